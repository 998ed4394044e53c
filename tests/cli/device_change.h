/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls as device_change_test.c plays them, in sources that include this before all else. */
#ifndef TESTS_CLI_DEVICE_CHANGE_H
#define TESTS_CLI_DEVICE_CHANGE_H

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

int fake_access(const char *path, int mode);
int fake_fclose(FILE *f);
FILE *fake_fopen(const char *path, const char *mode);
uid_t fake_geteuid(void);
int fake_mkdir(const char *path, mode_t mode);
DIR *fake_opendir(const char *path);
int fake_rename(const char *from, const char *to);
int fake_unlink(const char *path);

#ifndef DEVICE_CHANGE_TEST
#define access fake_access
#define fclose fake_fclose
#define fopen fake_fopen
#define geteuid fake_geteuid
#define mkdir fake_mkdir
#define opendir fake_opendir
#define rename fake_rename
#define unlink fake_unlink
#endif

#endif
