/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clusterfile.h"
#include "base/output.h"
#include "core/textdiff.h"

#define LARGEST (1 << 20)
#define TRIES 8 /* attempts to read a file that changes meanwhile */

static int ask(struct tool_client *c, uint32_t node, size_t offset, struct sio_rep_file *rep,
	       struct sio_err *reterr)
{
	struct sio_msg_file req = {.node = sio_to_le32(node),
				   .offset = sio_to_le32((uint32_t)offset)};

	return tool_client_call(c, SIO_MSG_FILE, &req, sizeof(req), rep, sizeof(*rep), reterr);
}

/*
 * Another host's answer is not trusted: @rep may hold any numbers. Return: 1: there is more; 0: the
 * file is complete; -EAGAIN: it was replaced meanwhile.
 */
static int append(struct tool_file *f, const struct sio_rep_file *rep, struct sio_err *reterr)
{
	size_t n = sio_from_le32(rep->count), total = sio_from_le32(rep->total);

	if (n > sizeof(rep->bytes) || total > LARGEST || f->len + n > total ||
	    (n == 0 && f->len < total))
		return sio_fail(reterr, -EPROTO, "a file of %zu bytes in parts of %zu", total, n);
	if (f->text && (f->sum != sio_from_le64(rep->sum) || f->total != total))
		return -EAGAIN;
	f->sum = sio_from_le64(rep->sum);
	f->total = total;
	if (!f->text)
		f->text = tool_alloc(total + 1, 1);
	memcpy(f->text + f->len, rep->bytes, n);
	f->len += n;
	return f->len < total;
}

int tool_file_fetch(struct tool_client *c, uint32_t node, bool whole, struct tool_file *ret,
		    struct sio_err *reterr)
{
	struct sio_rep_file *rep = tool_alloc(1, sizeof(*rep));
	struct tool_file f = {.text = NULL};
	unsigned tries = 0;
	int r;

	do {
		r = ask(c, node, f.len, rep, reterr);
		if (r == 0 && !whole)
			f.sum = sio_from_le64(rep->sum);
		else if (r == 0)
			r = append(&f, rep, reterr);
		if (r == -EAGAIN && ++tries == TRIES)
			sio_fail(reterr, r, "the file of node %u changes all the time", node);
		else if (r == -EAGAIN) {
			free(f.text);
			f = (struct tool_file){.text = NULL};
			r = 1;
		}
	} while (r > 0);
	free(rep);
	if (r < 0)
		free(f.text);
	else
		*ret = f;
	return r;
}

struct shown {
	tool_file_line *tell;
	void *ctx;
	unsigned n;
};

/*
 * The lines of another host's file are shown as plain text, so that they cannot control the
 * terminal.
 */
static void show_line(void *ctx, bool mine, unsigned line, const char *text, size_t len)
{
	struct shown *s = ctx;
	char copy[TOOL_FILE_LINE + 1];

	if (s->n++ >= TOOL_FILE_LINES)
		return;
	len = len < TOOL_FILE_LINE ? len : TOOL_FILE_LINE;
	for (size_t i = 0; i < len; i++)
		copy[i] = text[i] == '\t' ? ' ' : text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	copy[len] = '\0';
	s->tell(s->ctx, mine, line, copy);
}

int tool_file_compare(struct tool_client *c, uint32_t node, tool_file_line *tell, void *ctx,
		      unsigned *ret_lines, struct sio_err *reterr)
{
	struct tool_file ours = {.text = NULL}, theirs = {.text = NULL};
	struct shown shown = {.tell = tell, .ctx = ctx};
	int r;

	*ret_lines = 0;
	r = tool_file_fetch(c, 0, false, &ours, reterr);
	if (r == 0)
		r = tool_file_fetch(c, node, false, &theirs, reterr);
	if (r < 0 || ours.sum == theirs.sum)
		return r;
	r = tool_file_fetch(c, 0, true, &ours, reterr);
	if (r < 0)
		return r;
	r = tool_file_fetch(c, node, true, &theirs, reterr);
	if (r == 0)
		r = sio_textdiff(ours.text, ours.len, theirs.text, theirs.len, show_line, &shown);
	if (r >= 0)
		*ret_lines = (unsigned)r;
	else if (r == -ENOMEM)
		sio_fail(reterr, r, "no memory to compare two files: " SIO_MORE_MEMORY);
	free(ours.text);
	free(theirs.text);
	return r < 0 ? r : 0;
}
