/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Seals: message authentication codes by which a program proves to the next smartiod what it had of
 * other hosts, which the port does not know. SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein:
 * "SipHash: a fast short-input PRF", 2012).
 */
#include <errno.h>

#include "smartiod/base/session.h"

struct sip {
	uint64_t v[4];
};

static uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void rounds(struct sip *s, unsigned n)
{
	uint64_t *v = s->v;

	while (n-- > 0) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void word(struct sip *s, uint64_t m)
{
	s->v[3] ^= m;
	rounds(s, 2);
	s->v[0] ^= m;
}

uint64_t smartiod_siphash(const uint64_t key[2], const uint64_t *words, unsigned n)
{
	struct sip s = {{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
			 key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573}};

	for (unsigned i = 0; i < n; i++)
		word(&s, words[i]);
	word(&s, (uint64_t)(n * 8u) << 56);
	s.v[2] ^= 0xff;
	rounds(&s, 4);
	return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

uint64_t smartiod_new_secret(struct smartiod *d)
{
	return smartiod_is_real(d) ? d->ops->random(d->ctx) >> 2 | 1 : 0;
}

uint64_t smartiod_seal_words(const struct smartiod_session *s, uint32_t type, const uint64_t *words,
			     unsigned n)
{
	const uint64_t secret[2] = {s ? s->secret : 0, type};

	return s && s->secret ? smartiod_siphash(secret, words, n) : 0;
}

uint64_t smartiod_seal(const struct smartiod_session *s, uint32_t type, uint32_t handle,
		       uint64_t key, uint64_t number, uint64_t more)
{
	const uint64_t words[] = {handle, key, number, more};

	return smartiod_seal_words(s, type, words, 4);
}

int smartiod_seal_compare(const struct smartiod_session *s, const struct sio_msg_restore *m,
			  uint64_t seal, struct sio_err *reterr)
{
	if (s->secret && seal == sio_from_le64(m->seal))
		return 0;
	return sio_fail(
		reterr, -EACCES,
		"no smartiod has given it that, by that handle: what came with the handle is "
		"right");
}

int smartiod_seal_check(const struct smartiod_session *s, const struct sio_msg_restore *m,
			uint32_t type, uint64_t number, uint64_t more, struct sio_err *reterr)
{
	uint64_t seal = smartiod_seal(s, type, sio_from_le32(m->handle), sio_from_le64(m->key),
				      number, more);

	return smartiod_seal_compare(s, m, seal, reterr);
}
