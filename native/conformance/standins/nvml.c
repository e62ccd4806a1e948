/* A stand-in for libnvidia-ml.so.1 with three cards: GPU-counts counts its multiprocessors' activity as Hopper does and
 * tells of two processes, GPU-rates tells only whether kernels ran and of one process without its memory, GPU-silent tells
 * nothing. GPU-counts reaches both others over NVLink, and GPU-rates reaches it. A sample of GPM is the time at which it
 * was taken. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };
enum { COUNTS = 1, RATES = 2, SILENT = 3 };
enum { SM_UTIL = 2 };
enum { P2P_OVER_NVLINK = 2, P2P_OK = 0, P2P_NOT_SUPPORTED = 5 };

typedef struct device *device_t;
typedef struct sample {
    uint64_t at;
} *sample_t;

struct metric {
    unsigned id;
    int status;
    double value;
    const char *names[3];
};

static int ready;

static int is(device_t device, int which) { return ready && (uintptr_t)device == (uintptr_t)which; }

int nvmlInit_v2(void) {
    ready = 1;
    return OK;
}

int nvmlShutdown(void) {
    ready = 0;
    return OK;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device_t *device) {
    static const char *const uuids[] = {"GPU-counts", "GPU-rates", "GPU-silent"};
    if (!ready)
        return UNINITIALIZED;
    for (int n = 0; n < 3; n++)
        if (!strcmp(uuid, uuids[n])) {
            *device = (device_t)(uintptr_t)(n + 1);
            return OK;
        }
    return NOT_FOUND;
}

int nvmlDeviceGetUtilizationRates(device_t device, unsigned *rates) {
    if (!is(device, RATES))
        return NOT_SUPPORTED;
    rates[0] = 80;
    rates[1] = 10;
    return OK;
}

int nvmlDeviceGetP2PStatus(device_t from, device_t to, int capability, int *status) {
    if (capability != P2P_OVER_NVLINK || from == to)
        return INVALID_ARGUMENT;
    if (is(from, SILENT))
        return NOT_SUPPORTED;
    *status = is(from, COUNTS) || is(to, COUNTS) ? P2P_OK : P2P_NOT_SUPPORTED;
    return OK;
}

struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned instance, part;
};

int nvmlDeviceGetComputeRunningProcesses_v3(device_t device, unsigned *count, struct process *processes) {
    static const struct process all[] = {{11, 600ull << 20, ~0u, ~0u}, {12, 1ull << 30, ~0u, ~0u}};
    static const struct process hidden = {13, ~0ull, ~0u, ~0u};
    unsigned there = is(device, COUNTS) ? 2 : 1, room = *count;
    if (!is(device, COUNTS) && !is(device, RATES))
        return NOT_SUPPORTED;
    *count = there;
    if (room < there)
        return INSUFFICIENT_SIZE;
    memcpy(processes, is(device, COUNTS) ? all : &hidden, there * sizeof *processes);
    return OK;
}

int nvmlGpmQueryDeviceSupport(device_t device, unsigned *support) {
    if (support[0] != 1)
        return INVALID_ARGUMENT;
    support[1] = is(device, COUNTS);
    return OK;
}

int nvmlGpmSampleAlloc(sample_t *sample) {
    *sample = calloc(1, sizeof **sample);
    return OK;
}

int nvmlGpmSampleFree(sample_t sample) {
    free(sample);
    return OK;
}

int nvmlGpmSampleGet(device_t device, sample_t sample) {
    struct timespec now;
    if (!is(device, COUNTS))
        return NOT_SUPPORTED;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sample->at = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return OK;
}

struct request {
    unsigned version, count;
    sample_t first, second;
    struct metric metrics[];
};

/* Three eighths of the multiprocessors' time, where two samples are asked about in their order. */
int nvmlGpmMetricsGet(struct request *request) {
    if (request->version != 1 || request->count != 1 || request->metrics[0].id != SM_UTIL)
        return INVALID_ARGUMENT;
    if (!request->first->at || request->second->at <= request->first->at)
        return INVALID_ARGUMENT;
    request->metrics[0].status = OK;
    request->metrics[0].value = 37.5;
    return OK;
}
