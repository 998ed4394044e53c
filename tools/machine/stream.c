/* SPDX-License-Identifier: BSD-2-Clause */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "machine/stream.h"

#define HEAD 8

void stream_init(struct stream *s, int fd)
{
	s->fd = fd;
	s->in_len = s->in_used = s->out_len = s->out_sent = 0;
}

bool stream_has_room(const struct stream *s)
{
	return sizeof(s->out) - s->out_len >= HEAD + STREAM_CHUNK;
}

bool stream_put(struct stream *s, uint32_t kind, const void *data, size_t len)
{
	uint32_t head[2] = {htole32(kind), htole32((uint32_t)len)};

	if (len > STREAM_DATA || sizeof(s->out) - s->out_len < HEAD + len)
		return false;
	memcpy(s->out + s->out_len, head, HEAD);
	if (len)
		memcpy(s->out + s->out_len + HEAD, data, len);
	s->out_len += HEAD + len;
	return true;
}

bool stream_put_numbers(struct stream *s, uint32_t kind, uint32_t a, uint32_t b)
{
	uint32_t data[2] = {htole32(a), htole32(b)};

	return stream_put(s, kind, data, sizeof(data));
}

bool stream_pending(const struct stream *s)
{
	return s->out_len > 0;
}

void stream_forget(struct stream *s)
{
	s->out_len = s->out_sent = 0;
}

bool stream_send(struct stream *s)
{
	while (s->out_sent < s->out_len) {
		ssize_t len = send(s->fd, s->out + s->out_sent, s->out_len - s->out_sent,
				   MSG_NOSIGNAL | MSG_DONTWAIT);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == EAGAIN)
			break;
		if (len < 0)
			return false;
		s->out_sent += (size_t)len;
	}
	memmove(s->out, s->out + s->out_sent, s->out_len - s->out_sent);
	s->out_len -= s->out_sent;
	s->out_sent = 0;
	return true;
}

bool stream_receive(struct stream *s)
{
	ssize_t len;

	memmove(s->in, s->in + s->in_used, s->in_len - s->in_used);
	s->in_len -= s->in_used;
	s->in_used = 0;
	if (s->in_len == sizeof(s->in))
		return true;
	do
		len = recv(s->fd, s->in + s->in_len, sizeof(s->in) - s->in_len, MSG_DONTWAIT);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == EAGAIN;
	s->in_len += (size_t)len;
	return len > 0;
}

int stream_next(struct stream *s, struct stream_msg *ret)
{
	uint32_t head[2];

	if (s->in_len - s->in_used < HEAD)
		return 0;
	memcpy(head, s->in + s->in_used, HEAD);
	ret->kind = le32toh(head[0]);
	ret->len = le32toh(head[1]);
	if (ret->len > STREAM_DATA)
		return -1;
	if (s->in_len - s->in_used < HEAD + ret->len)
		return 0;
	ret->data = s->in + s->in_used + HEAD;
	s->in_used += HEAD + ret->len;
	return 1;
}

uint32_t stream_number(const struct stream_msg *m, unsigned index)
{
	uint32_t n;

	if (m->len < (index + 1) * sizeof(n))
		return 0;
	memcpy(&n, m->data + index * sizeof(n), sizeof(n));
	return le32toh(n);
}
