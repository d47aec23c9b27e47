/*
 * What the fake driver shares with the test that watches it: 64-bit numbers in
 * a file that both map. A second process with the same file shares the cards'
 * memory, as processes do.
 */
#ifndef TIDELINE_FAKE_STATE_H
#define TIDELINE_FAKE_STATE_H

enum state {
	/* alive now */
	LIVE_CONTEXTS, LIVE_STREAMS, LIVE_EVENTS, LIVE_MODULES,
	LIVE_BLOCKS, LIVE_BYTES, LIVE_HOST_BLOCKS, LIVE_HOST_BYTES,
	/* done so far */
	DID_ALLOC, DID_LAUNCH, DID_H2D, DID_D2H, DID_D2D, DID_FILL, DID_SKIP, DID_PRODUCT,
	/* thrown away with a healthy context instead of being given back first */
	LEFT_STREAMS, LEFT_EVENTS, LEFT_MODULES, LEFT_BLOCKS, LEFT_HOST_BLOCKS,

	/* what the test asks for; 0 is the default */
	SET_DEVICES = 32,  /* number of cards; 0 is 1, -1 is none */
	SET_MEMORY,        /* bytes of each; 0 is 256 MiB */
	SET_CONTEXT,       /* bytes that a context takes; 0 is 8 MiB */
	SET_HELD,          /* bytes that others hold on each card */
	SET_INIT_ERROR,    /* what cuInit answers */
	SET_ALLOC_FAILS,   /* n: the n-th device allocation from now has no memory; counts down */
	SET_HOST_FAILS,    /* the same for page-locked memory */
	SET_LAUNCH_FAILS,  /* n: the n-th kernel from now touches a bad address */
	SET_LOST,          /* n: at the n-th call from now the context is lost */
	SET_CAPABILITY,    /* compute capability times 10; 0 is 75 */

	USED_BYTES = 48,   /* by card, of all processes */
	STATE_COUNT = 64
};

#endif
