/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smartio top on a terminal. One thread asks the daemons, which may make it wait; another draws and
 * reads keys without delay.
 */
#include <curses.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"
#include "view/top.h"

/* ---- the thread that asks ---- */

struct asker {
	const struct tool_top *top;
	pthread_t thread;
	int fresh; /* eventfds: there is a new sample; */
	int told;  /* paused or stop has changed */
	pthread_mutex_t lock;
	/* Under the lock. */
	bool paused, stop;
	struct tool_sample *sample; /* a new one that was not taken yet */
	struct sio_err err;	    /* code: why no more samples come */
};

static void raise_event(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void lower_event(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

/* What the drawing thread wants now. */
static void read_wishes(struct asker *a, bool *ret_stop, bool *ret_paused)
{
	pthread_mutex_lock(&a->lock);
	*ret_stop = a->stop;
	*ret_paused = a->paused;
	pthread_mutex_unlock(&a->lock);
}

/*
 * Waits until the next sample is due; longer if it is paused. Return: false: the thread must stop.
 */
static bool wait_for_the_next(struct asker *a)
{
	int64_t left, until = tool_now_ms() + a->top->delay_ms;
	struct pollfd p = {.fd = a->told, .events = POLLIN};
	bool stop, paused;

	for (;;) {
		read_wishes(a, &stop, &paused);
		if (stop)
			return false;
		left = until - tool_now_ms();
		if (left <= 0 && !paused)
			return true;
		if (poll(&p, 1, paused ? -1 : (int)left) > 0)
			lower_event(a->told);
	}
}

static void *ask(void *arg)
{
	struct asker *a = arg;
	struct tool_sample *s;
	struct sio_err err;
	int r;

	do {
		r = tool_top_take(a->top, &s, &err);
		pthread_mutex_lock(&a->lock);
		if (r < 0) {
			a->err = err;
		} else {
			tool_sample_free(a->sample);
			a->sample = s;
		}
		pthread_mutex_unlock(&a->lock);
		raise_event(a->fresh);
	} while (r == 0 && wait_for_the_next(a));
	return NULL;
}

/*
 * Signals are blocked in the asking thread: the drawing thread needs the one for the terminal's
 * size.
 */
static int begin_asking(struct asker *a, struct sio_err *reterr)
{
	sigset_t all, before;
	int r;

	a->fresh = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	a->told = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (a->fresh < 0 || a->told < 0)
		return sio_fail(reterr, -errno, "eventfd: %s", strerror(errno));
	pthread_mutex_init(&a->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(&a->thread, NULL, ask, a);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r ? sio_fail(reterr, -r, "a thread: %s", strerror(r)) : 0;
}

static void tell(struct asker *a, bool stop, bool paused)
{
	pthread_mutex_lock(&a->lock);
	a->stop = stop;
	a->paused = paused;
	pthread_mutex_unlock(&a->lock);
	raise_event(a->told);
}

/*
 * A silent daemon may block the asking thread for long, and the user who types q should not have to
 * wait. Then the thread ends with the process, and @a is not freed. Return: has it ended?
 */
static bool end_asking(struct asker *a)
{
	struct timespec until;

	tell(a, true, false);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 200000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return pthread_timedjoin_np(a->thread, NULL, &until) == 0;
}

/* ---- the thread that draws ---- */

struct screen {
	const struct tool_top *top;
	struct asker *asker;
	struct tool_sample *before, *now;
	struct tool_frame *frame; /* NULL: there is no sample yet */
	enum tool_frame_sort sort;
	bool paused, help;
	int first;	/* the line of the frame that is shown first, below the title */
	unsigned looks; /* frames that were drawn with rates */
};

static const char *const help_lines[] = {
	"Rates are what counters grew by between two looks. READ and WRITTEN: what devices and DMA",
	"engines do, by the rules of PCIe; at a link, what passes it. Processors are seen by nobody.",
	"\"-\": not known: it is down, or what counts has begun again.",
	"",
	"q            end",
	"s            sort by name, read, write, faults",
	"p, space     pause; nothing is asked meanwhile",
	"arrows, page up, page down, home    scroll",
	"h, ?         this help; any key leaves it",
};

static void frame_again(struct screen *s)
{
	tool_frame_free(s->frame);
	s->frame = s->now ? tool_frame_new(s->before, s->now, s->sort) : NULL;
}

static chtype look_of(enum tool_frame_style style)
{
	switch (style) {
	case TOOL_LINE_TITLE:
		return A_BOLD;
	case TOOL_LINE_HEAD:
		return A_REVERSE;
	case TOOL_LINE_BUSY:
		return has_colors() ? (chtype)COLOR_PAIR(1) : A_BOLD;
	case TOOL_LINE_WRONG:
		return has_colors() ? (chtype)COLOR_PAIR(2) | A_BOLD : A_STANDOUT;
	default:
		return A_NORMAL;
	}
}

static void draw_line(int at, enum tool_frame_style style, const char *text)
{
	attrset((attr_t)look_of(style));
	mvaddnstr(at, 0, text, COLS);
	if (style == TOOL_LINE_HEAD)
		for (int x = (int)strlen(text); x < COLS; x++)
			addch(' ');
	attrset(A_NORMAL);
}

static void draw_frame(struct screen *s)
{
	const struct tool_frame *f = s->frame;
	int room = LINES - 2, most;

	if (!f) {
		draw_line(0, TOOL_LINE_TITLE, "looking at the cluster...");
		return;
	}
	most = (int)f->n - 1 - room;
	if (s->first > most)
		s->first = most;
	if (s->first < 0)
		s->first = 0;
	draw_line(0, f->line[0].style, f->line[0].text);
	for (int i = 0; i < room && 1 + s->first + i < (int)f->n; i++) {
		const struct tool_frame_line *l = &f->line[1 + s->first + i];

		draw_line(1 + i, l->style, l->text);
	}
}

static void draw(struct screen *s)
{
	char text[160];

	erase();
	if (s->help) {
		for (unsigned i = 0; i < sizeof(help_lines) / sizeof(help_lines[0]); i++)
			draw_line((int)i, TOOL_LINE_PLAIN, help_lines[i]);
	} else {
		draw_frame(s);
	}
	snprintf(text, sizeof(text), "%severy %.1f s, by %s   q end  s sort  p pause  h help",
		 s->paused ? "PAUSED  " : "", (double)s->top->delay_ms / 1e3,
		 tool_frame_sort_name[s->sort]);
	draw_line(LINES - 1, TOOL_LINE_TITLE, text);
	refresh();
}

/* Return: false: the user wants to quit. */
static bool obey(struct screen *s, int key)
{
	const int page = LINES > 4 ? LINES - 3 : 1;

	if (s->help && key != KEY_RESIZE) {
		s->help = false;
		return true;
	}
	switch (key) {
	case 'q':
		return false;
	case 's':
		s->sort = (enum tool_frame_sort)((s->sort + 1) % TOOL_SORTS);
		frame_again(s);
		break;
	case 'p':
	case ' ':
		s->paused = !s->paused;
		tell(s->asker, false, s->paused);
		break;
	case 'h':
	case '?':
		s->help = true;
		break;
	case KEY_UP:
		s->first--;
		break;
	case KEY_DOWN:
		s->first++;
		break;
	case KEY_PPAGE:
		s->first -= page;
		break;
	case KEY_NPAGE:
		s->first += page;
		break;
	case KEY_HOME:
		s->first = 0;
		break;
	default: /* KEY_RESIZE: everything is drawn again */
		break;
	}
	return true;
}

/* Return: 0: there is a new sample to draw; -errno: why the asking thread has ended. */
static int take_fresh(struct screen *s, struct sio_err *reterr)
{
	struct asker *a = s->asker;
	struct tool_sample *sample;

	lower_event(a->fresh);
	pthread_mutex_lock(&a->lock);
	sample = a->sample;
	a->sample = NULL;
	*reterr = a->err;
	pthread_mutex_unlock(&a->lock);
	if (sample) {
		tool_sample_free(s->before);
		s->before = s->now;
		s->now = sample;
		s->looks += s->before != NULL;
		frame_again(s);
	}
	return reterr->code;
}

/* Return: 0: the user quits, or has seen the number of frames that was wanted. */
static int watch(struct screen *s, struct sio_err *reterr)
{
	struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
			     {.fd = s->asker->fresh, .events = POLLIN}};
	int key, r;

	for (;;) {
		draw(s);
		if (s->top->frames && s->looks >= s->top->frames)
			return 0;
		p[0].revents = p[1].revents = 0;
		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return sio_fail(reterr, -errno, "poll: %s", strerror(errno));
		while ((key = getch()) != ERR)
			if (!obey(s, key))
				return 0;
		if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return 0; /* the terminal is gone */
		if (p[1].revents && (r = take_fresh(s, reterr)) < 0)
			return r;
	}
}

/* ---- the terminal ---- */

/* Messages of the asking thread must not appear on the screen. Return: a copy of standard error. */
static int hush(void)
{
	int copy = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, STDERR_FILENO);
		close(null);
	}
	return copy;
}

static void unhush(int copy)
{
	if (copy < 0)
		return;
	dup2(copy, STDERR_FILENO);
	close(copy);
}

static SCREEN *begin_screen(struct sio_err *reterr)
{
	const char *term = getenv("TERM");
	SCREEN *screen = isatty(STDIN_FILENO) ? newterm(NULL, stdout, stdin) : NULL;

	if (!screen) {
		sio_fail(reterr, -EOPNOTSUPP,
			 "cannot draw on this terminal (TERM is '%s'); --batch or --once is right",
			 term ? term : "");
		return NULL;
	}
	set_term(screen);
	cbreak();
	noecho();
	nodelay(stdscr, TRUE);
	keypad(stdscr, TRUE);
	curs_set(0);
	if (has_colors() && start_color() == OK) {
		use_default_colors();
		init_pair(1, COLOR_GREEN, -1);
		init_pair(2, COLOR_RED, -1);
	}
	return screen;
}

int tool_top_screen(const struct tool_top *top, int *ret_status, struct sio_err *reterr)
{
	struct asker *a = tool_alloc(1, sizeof(*a));
	struct screen s = {.top = top, .asker = a, .sort = top->sort};
	SCREEN *screen = begin_screen(reterr);
	int r, copy;
	bool ended = true;

	*ret_status = 0;
	if (!screen) {
		free(a);
		return reterr->code;
	}
	copy = hush();
	a->top = top;
	r = begin_asking(a, reterr);
	if (r == 0) {
		r = watch(&s, reterr);
		ended = end_asking(a);
	}
	endwin();
	delscreen(screen);
	unhush(copy);
	tool_frame_free(s.frame);
	tool_sample_free(s.before);
	tool_sample_free(s.now);
	if (ended) {
		tool_sample_free(a->sample);
		close(a->fresh);
		close(a->told);
		free(a);
	}
	return r;
}
