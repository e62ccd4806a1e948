/* The driver that it is linked with, on a device that has tensor maps. A map holds what it was made of: see tensor_maps.py. */

#include "standin.h"

enum { INVALID_VALUE = 1, TENSOR_MAP_ACCESS = 127, TYPES = 16 };

/* CUtensorMap */
typedef struct {
    uint8_t kind, type, rank, modes[4], unused;
    uint64_t address, sizes[5], strides[4];
    uint32_t window[5], channels, pixels;
    uint8_t steps[5], unused_2[3];
} Map;

_Static_assert(sizeof(Map) == 128, "as long as a CUtensorMap");

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    if (attribute == TENSOR_MAP_ACCESS) {
        *value = 1;
        return 0;
    }
    return ((int (*)(int *, int, int))driver("cuDeviceGetAttribute"))(value, attribute, device);
}

static int encode(Map *map, uint8_t kind, uint32_t type, uint32_t rank, uint64_t address, const uint64_t *sizes,
                  const uint64_t *strides, const uint32_t *steps, const uint32_t modes[4]) {
    if ((uintptr_t)map % 64 || type >= TYPES || rank < 1 || rank > 5 || address % 16)
        return INVALID_VALUE;
    memset(map, 0, sizeof *map);
    map->kind = kind, map->type = type, map->rank = rank, map->address = address;
    for (int mode = 0; mode < 4; mode++)
        map->modes[mode] = modes[mode];
    for (uint32_t dimension = 0; dimension < rank; dimension++) {
        map->sizes[dimension] = sizes[dimension];
        map->steps[dimension] = steps[dimension];
        if (dimension + 1 < rank)
            map->strides[dimension] = strides[dimension];
    }
    return 0;
}

int cuTensorMapEncodeTiled(Map *map, uint32_t type, uint32_t rank, uint64_t address, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, uint32_t interleave,
                           uint32_t swizzle, uint32_t promotion, uint32_t fill) {
    int status = encode(map, 1, type, rank, address, sizes, strides, steps,
                        (uint32_t[]){interleave, swizzle, promotion, fill});
    for (uint32_t dimension = 0; !status && dimension < rank; dimension++)
        map->window[dimension] = box[dimension];
    return status;
}

int cuTensorMapEncodeIm2col(Map *map, uint32_t type, uint32_t rank, uint64_t address, const uint64_t *sizes,
                            const uint64_t *strides, const int *lower, const int *upper, uint32_t channels,
                            uint32_t pixels, const uint32_t *steps, uint32_t interleave, uint32_t swizzle,
                            uint32_t promotion, uint32_t fill) {
    if (rank < 3)
        return INVALID_VALUE;
    int status = encode(map, 2, type, rank, address, sizes, strides, steps,
                        (uint32_t[]){interleave, swizzle, promotion, fill});
    for (uint32_t corner = 0; !status && corner < rank - 2; corner++)
        map->window[corner] = (uint32_t)(lower[corner] & 0xffff) << 16 | (uint32_t)(upper[corner] & 0xffff);
    if (!status)
        map->channels = channels, map->pixels = pixels;
    return status;
}

int cuTensorMapReplaceAddress(Map *map, uint64_t address) {
    if ((uintptr_t)map % 64 || !map->kind || address % 16)
        return INVALID_VALUE;
    map->address = address;
    return 0;
}
