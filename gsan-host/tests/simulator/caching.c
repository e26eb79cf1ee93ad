/* A caching allocator in C: it cuts blocks of one size from a slab, keeps those that are freed, and hands them out again. */
#include "gsan.h"

static char *next, *end;
static void *freed;
static size_t size;
static gsan_forget_hook forget;

void cache_init(void *slab, size_t bytes, size_t block, gsan_forget_hook hook)
{
    next = slab;
    end = next + bytes;
    size = block;
    freed = NULL;
    forget = hook;
}

/* A block for use in a stream. */
void *cache_alloc(void *stream)
{
    void *block = freed;
    if (block != NULL) {
        freed = NULL;
        if (forget != NULL && forget(block, size, stream) == GSAN_FAILED)
            return NULL;
        return block;
    }
    if ((size_t)(end - next) < size)
        return NULL;
    block = next;
    next += size;
    return block;
}

/* Gives one back; there is room for one. */
void cache_free(void *block)
{
    freed = block;
}
