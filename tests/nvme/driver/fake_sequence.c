/* SPDX-License-Identifier: BSD-2-Clause */
/* The fake's API half: sequences, which judge what the path has lost since they were started. */
#undef NDEBUG /* what fakes assert is part of the test */
#include <assert.h>

#include "fake_handle.h"

void SCICreateMapSequence(sci_map_t map, sci_sequence_t *sequence, unsigned int flags,
			  sci_error_t *error)
{
	struct fake_handle *s;

	fake_get(map, MAP);
	assert(flags == 0);
	if (fake_injected(error))
		return;
	s = fake_make(SEQUENCE);
	s->id = fake.losses;
	*sequence = (sci_sequence_t)s;
}

void SCIRemoveSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error)
{
	assert(flags == 0);
	fake_drop(fake_get(sequence, SEQUENCE));
	*error = SCI_ERR_OK;
}

sci_sequence_status_t SCIStartSequence(sci_sequence_t sequence, unsigned int flags,
				       sci_error_t *error)
{
	struct fake_handle *s = fake_get(sequence, SEQUENCE);

	assert(flags == 0);
	if (fake_injected(error))
		return SCI_SEQ_NOT_RETRIABLE;
	s->id = fake.losses;
	return SCI_SEQ_OK;
}

sci_sequence_status_t SCICheckSequence(sci_sequence_t sequence, unsigned int flags,
				       sci_error_t *error)
{
	const struct fake_handle *s = fake_get(sequence, SEQUENCE);

	assert(flags == (SCI_FLAG_NO_FLUSH | SCI_FLAG_NO_STORE_BARRIER));
	*error = SCI_ERR_OK;
	return s->id == fake.losses ? SCI_SEQ_OK : SCI_SEQ_RETRIABLE;
}
