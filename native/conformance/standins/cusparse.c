/* A stand-in for libcusparse.so.12: what the software GPU's own does not have. Objects know what they are, scalars and
 * results lie where the pointer mode says, and what a step leaves in an object is checked by the next. */

#include "standin.h"

enum { OK = 0, NOT_INITIALIZED = 1, INVALID = 3, ZERO_PIVOT = 9 };
enum { HANDLE = 0x51, DESCRIPTOR, MATRIX, VECTOR, FACTOR, WORK };

struct object {
    int kind, mode, analysed, boosted;
    void *stream;
    int64_t rows, nnz;
    uint64_t values;
    size_t estimated, computed;
};

static int make(struct object **object, int kind) {
    *object = calloc(1, sizeof **object);
    (*object)->kind = kind;
    return OK;
}

static int end(struct object *object, int kind) {
    if (!object || object->kind != kind)
        return INVALID;
    object->kind = 0;
    free(object);
    return OK;
}

/* A scalar from where the mode says. */
static double number(struct object *handle, const void *place, size_t bytes) {
    char data[16];
    if (handle->mode)
        download(data, (uint64_t)place, bytes);
    else
        memcpy(data, place, bytes);
    return bytes == 4 ? *(float *)data : *(double *)data;
}

static int tell(struct object *handle, void *place, const void *data, size_t bytes) {
    if (handle->mode)
        return upload((uint64_t)place, data, bytes) ? INVALID : OK;
    memcpy(place, data, bytes);
    return OK;
}

int cusparseGetProperty(int part, int *value) {
    *value = (int[]){12, 7, 3}[part];
    return OK;
}

int cusparseCreate(struct object **handle) { return make(handle, HANDLE); }
int cusparseDestroy(struct object *handle) { return end(handle, HANDLE); }

int cusparseSetStream(struct object *handle, void *stream) {
    handle->stream = stream;
    return OK;
}

int cusparseSetPointerMode(struct object *handle, int mode) {
    handle->mode = mode;
    return OK;
}

int cusparseCreateMatDescr(struct object **descriptor) { return make(descriptor, DESCRIPTOR); }
int cusparseDestroyMatDescr(struct object *descriptor) { return end(descriptor, DESCRIPTOR); }

int cusparseCreateCsr(struct object **matrix, int64_t rows, int64_t cols, int64_t nnz, uint64_t offsets, uint64_t indices,
                      uint64_t values, int of_offsets, int of_indices, int base, int type) {
    make(matrix, MATRIX);
    (*matrix)->rows = rows, (*matrix)->nnz = nnz, (*matrix)->values = values;
    return cols && !base && of_offsets == 2 && of_indices == 2 && type == 0 ? OK : INVALID;
}

int cusparseDestroySpMat(struct object *matrix) { return end(matrix, MATRIX); }

int cusparseSpMatGetSize(struct object *matrix, int64_t *rows, int64_t *cols, int64_t *nnz) {
    *rows = *cols = matrix->rows, *nnz = matrix->nnz;
    return OK;
}

int cusparseCreateCsrilu02Info(struct object **info) { return make(info, FACTOR); }
int cusparseDestroyCsrilu02Info(struct object *info) { return end(info, FACTOR); }

int cusparseScsrilu02_numericBoost(struct object *handle, struct object *info, int enable, double *tolerance, float *value) {
    if (info->kind != FACTOR || number(handle, tolerance, 8) != 0.125 || number(handle, value, 4) != 3)
        return INVALID;
    info->boosted = enable;
    return OK;
}

int cusparseScsrilu02_bufferSize(struct object *handle, int m, int nnz, struct object *descriptor, uint64_t values,
                                 uint64_t offsets, uint64_t indices, struct object *info, int *bytes) {
    *bytes = 16 * nnz;
    return handle->kind == HANDLE && descriptor->kind == DESCRIPTOR && info->kind == FACTOR ? OK : INVALID;
}

int cusparseScsrilu02_analysis(struct object *handle, int m, int nnz, struct object *descriptor, uint64_t values,
                               uint64_t offsets, uint64_t indices, struct object *info, int policy, uint64_t buffer) {
    if (handle->kind != HANDLE || descriptor->kind != DESCRIPTOR || info->kind != FACTOR || policy != 1 || !buffer)
        return INVALID;
    info->analysed = nnz;
    return OK;
}

/* Factors by doubling what is there. */
int cusparseScsrilu02(struct object *handle, int m, int nnz, struct object *descriptor, uint64_t values, uint64_t offsets,
                      uint64_t indices, struct object *info, int policy, uint64_t buffer) {
    if (info->kind != FACTOR || info->analysed != nnz || !info->boosted || !buffer || !handle->stream)
        return INVALID;
    float data[nnz];
    int failed = download(data, values, sizeof data);
    for (int at = 0; at < nnz; at++)
        data[at] *= 2;
    return failed | upload(values, data, sizeof data) ? INVALID : OK;
}

int cusparseXcsrilu02_zeroPivot(struct object *handle, struct object *info, int *position) {
    int found = info->analysed - 1;
    tell(handle, position, &found, 4);
    return ZERO_PIVOT;
}

int cusparseSpGEMM_createDescr(struct object **work) { return make(work, WORK); }
int cusparseSpGEMM_destroyDescr(struct object *work) { return end(work, WORK); }

/* Each step is called twice: for the bytes of its buffer, and with it. */
static int step(size_t *known, size_t *bytes, uint64_t buffer, size_t needed) {
    if (!buffer) {
        *bytes = needed;
        return OK;
    }
    *known = *bytes;
    return *bytes == needed ? OK : INVALID;
}

int cusparseSpGEMM_workEstimation(struct object *handle, int op_a, int op_b, const float *alpha, struct object *a,
                                  struct object *b, const float *beta, struct object *c, int type, int algorithm,
                                  struct object *work, size_t *bytes, uint64_t buffer) {
    if (a->kind != MATRIX || b->kind != MATRIX || c->kind != MATRIX || work->kind != WORK || number(handle, beta, 4) != 0)
        return INVALID;
    return step(&work->estimated, bytes, buffer, 48);
}

int cusparseSpGEMM_compute(struct object *handle, int op_a, int op_b, const float *alpha, struct object *a,
                           struct object *b, const float *beta, struct object *c, int type, int algorithm,
                           struct object *work, size_t *bytes, uint64_t buffer) {
    if (work->estimated != 48)
        return INVALID;
    int status = step(&work->computed, bytes, buffer, 96);
    c->nnz = a->nnz + b->nnz;
    return status;
}

int cusparseSpGEMM_copy(struct object *handle, int op_a, int op_b, const float *alpha, struct object *a, struct object *b,
                        const float *beta, struct object *c, int type, int algorithm, struct object *work) {
    float factor = number(handle, alpha, 4);
    return work->computed != 96 || upload(c->values, &factor, 4) ? INVALID : OK;
}

/* How the tolerance is passed is what differs: a float, two floats in one register, two doubles. */
static int compress(struct object *handle, uint64_t counts, int *total, double real, double imaginary) {
    int told[2] = {real * 10, imaginary * 10}, sum = told[0] + told[1];
    return upload(counts, told, sizeof told) || tell(handle, total, &sum, 4) ? INVALID : OK;
}

struct single {
    float real, imaginary;
} __attribute__((aligned(8)));

struct twofold {
    double real, imaginary;
} __attribute__((aligned(16)));

int cusparseSnnz_compress(struct object *handle, int m, struct object *descriptor, uint64_t values, uint64_t offsets,
                          uint64_t counts, int *total, float tolerance) {
    return compress(handle, counts, total, tolerance, 0);
}

int cusparseCnnz_compress(struct object *handle, int m, struct object *descriptor, uint64_t values, uint64_t offsets,
                          uint64_t counts, int *total, struct single tolerance) {
    return compress(handle, counts, total, tolerance.real, tolerance.imaginary);
}

int cusparseZnnz_compress(struct object *handle, int m, struct object *descriptor, uint64_t values, uint64_t offsets,
                          uint64_t counts, int *total, struct twofold tolerance) {
    return compress(handle, counts, total, tolerance.real, tolerance.imaginary);
}
