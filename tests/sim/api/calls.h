/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included before each of the API's tests when it is built for the simulator: replaces calls of the
 * C library that wait, or are about processes and threads, by those of api/process.c.
 */
#ifndef SIM_API_CALLS_H
#define SIM_API_CALLS_H

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int api_kill(pid_t pid, int sig);
int api_raise(int sig);
void api_exit(int status) __attribute__((noreturn));
pid_t api_getpid(void);
int api_usleep(useconds_t us);
int api_nanosleep(const struct timespec *time, struct timespec *left);
int api_clock_gettime(clockid_t clock, struct timespec *time);
int api_poll(struct pollfd *p, nfds_t n, int timeout_ms);
void *api_mmap(void *at, size_t len, int prot, int flags, int fd, off_t offset);
int api_munmap(void *at, size_t len);
void *api_aligned_alloc(size_t alignment, size_t len);
void api_free(void *at);
int api_pause(void);
int api_yield(void);
int api_thread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int api_thread_join(pthread_t t, void **ret);
pthread_t api_thread_self(void);
int api_mutex_lock(pthread_mutex_t *m);
int api_mutex_unlock(pthread_mutex_t *m);
int api_cond_wait(pthread_cond_t *c, pthread_mutex_t *m);
int api_cond_signal(pthread_cond_t *c);
int api_barrier_init(pthread_barrier_t *b, const pthread_barrierattr_t *attr, unsigned n);
int api_barrier_wait(pthread_barrier_t *b);
int api_barrier_destroy(pthread_barrier_t *b);

#ifdef SIM_API_TEST /* not for who defines them */
#define kill api_kill
#define raise api_raise
#define exit api_exit
#define _exit api_exit
#define getpid api_getpid
#define usleep api_usleep
#define nanosleep api_nanosleep
#define clock_gettime api_clock_gettime
#define poll api_poll
#define mmap api_mmap
#define munmap api_munmap
#define aligned_alloc api_aligned_alloc
#define free api_free
#define pause api_pause
#define sched_yield api_yield
#define pthread_create api_thread_create
#define pthread_join api_thread_join
#define pthread_self api_thread_self
#define pthread_mutex_lock api_mutex_lock
#define pthread_mutex_unlock api_mutex_unlock
#define pthread_cond_wait api_cond_wait
#define pthread_cond_signal api_cond_signal
#define pthread_barrier_init api_barrier_init
#define pthread_barrier_wait api_barrier_wait
#define pthread_barrier_destroy api_barrier_destroy
#define main SIM_API_TEST
int main(void);
#endif

#endif
