/*
 * Preloaded into the programs of an installation, so that their wall clock can be set without setting the machine's:
 * adds the seconds in the file SLUICE_SOAK_CLOCK (a 64-bit integer, which the soak rewrites) to the time of day.
 * Monotonic clocks, which nobody can set, stay as they are.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void open_clock(void) {
    const char *name = getenv("SLUICE_SOAK_CLOCK");
    int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) offset = mapped;
}

static int64_t ahead(void) { return offset == NULL ? 0 : *offset; }

/* The system call itself: other functions of the C library must not come here a second time. */
static int now(clockid_t clock, struct timespec *at) {
    long result = syscall(SYS_clock_gettime, clock, at);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += ahead();
    return (int)result;
}

int clock_gettime(clockid_t clock, struct timespec *at) { return now(clock, at); }

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    if (now(CLOCK_REALTIME, &precise) != 0) return -1;
    at->tv_sec = precise.tv_sec;
    at->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *at) {
    struct timespec precise;
    now(CLOCK_REALTIME, &precise);
    if (at != NULL) *at = precise.tv_sec;
    return precise.tv_sec;
}
