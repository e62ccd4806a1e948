/* What the stand-ins share: libraries of our own that a GPU server loads in place of NVIDIA's, for tests. They check what
 * they are given as strictly as the originals, and compute something small through the CUDA driver's public API. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A function of the driver that this process runs on. */
static void *driver(const char *name) {
    static void *library;
    if (!library)
        library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : NULL;
    if (!found) {
        fprintf(stderr, "stand-in: no %s: %s\n", name, dlerror());
        abort();
    }
    return found;
}

static inline int download(void *to, uint64_t from, size_t bytes) {
    return ((int (*)(void *, uint64_t, size_t))driver("cuMemcpyDtoH_v2"))(to, from, bytes);
}

static inline int upload(uint64_t to, const void *from, size_t bytes) {
    return ((int (*)(uint64_t, const void *, size_t))driver("cuMemcpyHtoD_v2"))(to, from, bytes);
}
