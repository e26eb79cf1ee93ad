/* What C code calls in a program that runs under gsan. */
#ifndef GSAN_H
#define GSAN_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For allocators that hand out memory again which they have not given back to gsan: forgets what was done with that memory, so
 * that it starts clean, in the order of a stream (a CUstream; NULL is the legacy default stream): what comes later in that stream,
 * or after it, is not compared with what came before. Call it when a block is handed out for use in the stream; that earlier work
 * on the block has ended, or is ordered before, is the allocator's own business, as it is without gsan. The caller's current
 * context stays. From any thread. */
int gsan_forget(void *address, size_t bytes, void *stream);

/* The type of it, for allocators that take it as a hook. */
typedef int (*gsan_forget_hook)(void *address, size_t bytes, void *stream);

/* What it answers. */
#define GSAN_FORGOTTEN 0 /* The memory starts clean. */
#define GSAN_NOT_CHECKED 1 /* It is not in a buffer that gsan checks: there is nothing to forget. */
#define GSAN_FAILED 2 /* The driver has refused, as it does after a fatal error. */

#ifdef __cplusplus
}
#endif

#endif
