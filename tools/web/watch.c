/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/output.h"
#include "web/live.h"
#include "web/watch.h"

#define BETWEEN_MS 1000 /* from the end of one sample to the beginning of the next */
#define READER_MS 5000	/* a reader that has not read for so long has gone */
#define STOP_MS 200

struct tool_web_watch {
	char dir[PATH_MAX], cluster[SIO_NAME_LEN];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a reader has come, or @stop is set */
	/* Under the lock. */
	bool stop;
	char *text;
	int64_t made_at;
	int64_t read_at; /* 0: nobody has read yet */
	/* Used by the sampling thread alone. */
	struct tool_sample *before;
	uint64_t looks;
};

/* ---- the sampling thread ---- */

static char *look(struct tool_web_watch *w)
{
	struct tool_sample *now = NULL;
	struct tool_view *v = NULL;
	struct sio_err err;
	char *text;
	int r = tool_view_open_dir(w->dir, &v, &err);

	if (r == 0)
		r = tool_sample_take(v, NULL, TOOL_SAMPLE_BORROWERS | TOOL_SAMPLE_LINKS, &now,
				     &err);
	text = r < 0 ? tool_web_gone(w->cluster, &err)
		     : tool_web_live(w->cluster, ++w->looks, v, w->before, now);
	tool_view_close(v);
	tool_sample_free(w->before);
	w->before = now;
	return text;
}

static void publish(struct tool_web_watch *w, char *text)
{
	pthread_mutex_lock(&w->lock);
	free(w->text);
	w->text = text;
	w->made_at = tool_now_ms();
	pthread_mutex_unlock(&w->lock);
}

static bool has_reader(const struct tool_web_watch *w, int64_t now)
{
	return w->read_at && now - w->read_at < READER_MS;
}

static void wait_until(struct tool_web_watch *w, int64_t ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	pthread_cond_timedwait(&w->changed, &w->lock, &t);
}

/* Until the next sample is due and there is a reader. Return: false: the thread must stop. */
static bool wait_for_the_next(struct tool_web_watch *w)
{
	int64_t due = tool_now_ms() + (w->before || w->looks ? BETWEEN_MS : 0), now;
	bool stop;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		now = tool_now_ms();
		if (now < due)
			wait_until(w, due);
		else if (!has_reader(w, now))
			pthread_cond_wait(&w->changed, &w->lock);
		else
			break;
	}
	stop = w->stop;
	pthread_mutex_unlock(&w->lock);
	return !stop;
}

static void *watch(void *arg)
{
	struct tool_web_watch *w = arg;

	while (wait_for_the_next(w))
		publish(w, look(w));
	return NULL;
}

int tool_web_watch_start(const char *dir, const char *cluster, struct tool_web_watch **ret,
			 struct sio_err *reterr)
{
	struct tool_web_watch *w = tool_alloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int r;

	snprintf(w->dir, sizeof(w->dir), "%s", dir);
	snprintf(w->cluster, sizeof(w->cluster), "%s", cluster);
	w->text = tool_web_looking(w->cluster);
	w->made_at = tool_now_ms();
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	r = pthread_create(&w->thread, NULL, watch, w);
	if (r) {
		pthread_cond_destroy(&w->changed);
		pthread_mutex_destroy(&w->lock);
		free(w->text);
		free(w);
		return sio_fail(reterr, -r, "a thread: %s", strerror(r));
	}
	*ret = w;
	return 0;
}

/* ---- readers ---- */

char *tool_web_watch_read(struct tool_web_watch *w, int64_t *ret_age_ms)
{
	int64_t now = tool_now_ms();
	char *text;

	pthread_mutex_lock(&w->lock);
	/* A sample from before a pause would be taken for the present state. */
	if (!has_reader(w, now) && now - w->made_at >= READER_MS) {
		free(w->text);
		w->text = tool_web_looking(w->cluster);
		w->made_at = now;
	}
	w->read_at = now;
	pthread_cond_signal(&w->changed);
	text = w->text ? strdup(w->text) : NULL;
	*ret_age_ms = now - w->made_at;
	pthread_mutex_unlock(&w->lock);
	return text;
}

void tool_web_watch_stop(struct tool_web_watch *w)
{
	struct timespec until;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += STOP_MS * INT64_C(1000000);
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (pthread_timedjoin_np(w->thread, NULL, &until) != 0)
		return;
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	tool_sample_free(w->before);
	free(w->text);
	free(w);
}
