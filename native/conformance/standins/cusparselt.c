/* A stand-in for libcusparseLt.so.0: products of matrices of floats by rows. As in the original, objects are structures
 * of the caller; here they know where they were made, and a structure that is elsewhere is refused. */

#include "standin.h"

enum { OK = 0, NOT_INITIALIZED = 1, INVALID = 3, NOT_SUPPORTED = 10 };
enum { HANDLE = 0x41, MATRIX, PRODUCT, SELECTION, PLAN };
enum { RELU = 0, ALPHA_VECTOR = 5, BIAS = 8 };
enum { ID = 0, MOST_ID = 1, SPLIT_K = 3 };

struct any {
    struct any *self;
    int kind;
};

struct matrix {
    struct any any;
    int64_t rows, cols, ld;
    int batches, sparse;
};

struct product {
    struct any any;
    const struct matrix *a, *b, *c, *d;
    int relu, by_vector;
    uint64_t bias;
};

struct selection {
    struct any any;
    int id, split;
};

struct plan {
    struct any any;
    const struct product *product;
    struct selection selection;
};

static int is(const void *object, int kind) {
    const struct any *any = object;
    return any && any->self == any && any->kind == kind;
}

static void make(void *object, int kind, size_t bytes) {
    memset(object, 0, bytes);
    *(struct any *)object = (struct any){object, kind};
}

static int end(void *object, int kind) {
    if (!is(object, kind))
        return INVALID;
    memset(object, 0, sizeof(struct any));
    return OK;
}

int cusparseLtGetProperty(int part, int *value) {
    *value = (int[]){0, 9, 2}[part];
    return OK;
}

int cusparseLtInit(struct any *handle) {
    make(handle, HANDLE, sizeof *handle);
    return OK;
}

int cusparseLtDestroy(struct any *handle) { return end(handle, HANDLE); }

int cusparseLtDenseDescriptorInit(const struct any *handle, struct matrix *matrix, int64_t rows, int64_t cols, int64_t ld,
                                  uint32_t alignment, int type, int order) {
    if (!is(handle, HANDLE))
        return NOT_INITIALIZED;
    if (rows <= 0 || cols <= 0 || ld < cols || alignment % 16 || type != 0 || order != 2)
        return INVALID;
    make(matrix, MATRIX, sizeof *matrix);
    matrix->rows = rows, matrix->cols = cols, matrix->ld = ld, matrix->batches = 1;
    return OK;
}

int cusparseLtStructuredDescriptorInit(const struct any *handle, struct matrix *matrix, int64_t rows, int64_t cols,
                                       int64_t ld, uint32_t alignment, int type, int order, int sparsity) {
    int status = cusparseLtDenseDescriptorInit(handle, matrix, rows, cols, ld, alignment, type, order);
    if (status == OK)
        matrix->sparse = 1;
    return sparsity ? NOT_SUPPORTED : status;
}

int cusparseLtMatDescriptorDestroy(struct matrix *matrix) { return end(matrix, MATRIX); }

int cusparseLtMatDescSetAttribute(const struct any *handle, struct matrix *matrix, int attribute, const int *data,
                                  size_t bytes) {
    if (!is(matrix, MATRIX) || attribute != 0 || bytes != 4)
        return INVALID;
    matrix->batches = *data;
    return OK;
}

int cusparseLtMatDescGetAttribute(const struct any *handle, const struct matrix *matrix, int attribute, int *data,
                                  size_t bytes) {
    if (!is(matrix, MATRIX) || attribute != 0 || bytes != 4)
        return INVALID;
    *data = matrix->batches;
    return OK;
}

int cusparseLtMatmulDescriptorInit(const struct any *handle, struct product *product, int op_a, int op_b,
                                   const struct matrix *a, const struct matrix *b, const struct matrix *c,
                                   const struct matrix *d, int compute) {
    if (!is(handle, HANDLE) || !is(a, MATRIX) || !is(b, MATRIX) || !is(c, MATRIX) || !is(d, MATRIX) || op_a || op_b)
        return INVALID;
    if (!a->sparse || a->cols != b->rows || d->rows != a->rows || d->cols != b->cols || compute != 2)
        return NOT_SUPPORTED;
    make(product, PRODUCT, sizeof *product);
    product->a = a, product->b = b, product->c = c, product->d = d;
    return OK;
}

int cusparseLtMatmulDescSetAttribute(const struct any *handle, struct product *product, int attribute, const void *data,
                                     size_t bytes) {
    if (!is(product, PRODUCT))
        return INVALID;
    if (attribute == RELU && bytes == 4)
        product->relu = *(const int *)data;
    else if (attribute == ALPHA_VECTOR && bytes == 4)
        product->by_vector = *(const int *)data;
    else if (attribute == BIAS && bytes == 8)
        product->bias = *(const uint64_t *)data;
    else
        return INVALID;
    return OK;
}

int cusparseLtMatmulAlgSelectionInit(const struct any *handle, struct selection *selection, const struct product *product,
                                     int algorithm) {
    if (!is(product, PRODUCT) || algorithm)
        return INVALID;
    make(selection, SELECTION, sizeof *selection);
    selection->split = 1;
    return OK;
}

int cusparseLtMatmulAlgSetAttribute(const struct any *handle, struct selection *selection, int attribute, const int *data,
                                    size_t bytes) {
    if (!is(selection, SELECTION) || bytes != 4)
        return INVALID;
    if (attribute == SPLIT_K && *data > 4)
        return NOT_SUPPORTED;
    *(attribute == SPLIT_K ? &selection->split : &selection->id) = *data;
    return OK;
}

int cusparseLtMatmulAlgGetAttribute(const struct any *handle, const struct selection *selection, int attribute, int *data,
                                    size_t bytes) {
    if (!is(selection, SELECTION) || bytes != 4)
        return INVALID;
    *data = attribute == SPLIT_K ? selection->split : attribute == MOST_ID ? 5 : selection->id;
    return OK;
}

int cusparseLtMatmulPlanInit(const struct any *handle, struct plan *plan, const struct product *product,
                             const struct selection *selection) {
    if (!is(product, PRODUCT) || !is(selection, SELECTION))
        return INVALID;
    make(plan, PLAN, sizeof *plan);
    plan->product = product;
    plan->selection = *selection;
    return OK;
}

int cusparseLtMatmulPlanDestroy(struct plan *plan) { return end(plan, PLAN); }

int cusparseLtMatmulGetWorkspace(const struct any *handle, const struct plan *plan, size_t *bytes) {
    *bytes = 64 * plan->selection.split;
    return is(plan, PLAN) ? OK : INVALID;
}

int cusparseLtMatmul(const struct any *handle, const struct plan *plan, const float *alpha, uint64_t a, uint64_t b,
                     const float *beta, uint64_t c, uint64_t d, uint64_t workspace, void **streams, int count) {
    if (!is(handle, HANDLE) || !is(plan, PLAN) || !is(plan->product, PRODUCT) || count != 1 || !streams[0] || !workspace)
        return INVALID;
    const struct product *of = plan->product;
    if (!is(of->a, MATRIX) || !is(of->b, MATRIX) || !is(of->c, MATRIX) || !is(of->d, MATRIX))
        return INVALID;
    int64_t m = of->a->rows, k = of->a->cols, n = of->b->cols;
    float *left = malloc(4 * m * k), *right = malloc(4 * k * n), *old = malloc(4 * m * n), *out = malloc(4 * m * n);
    float *bias = calloc(m, 4), *scale = malloc(4 * m);
    int failed = download(left, a, 4 * m * k) | download(right, b, 4 * k * n) | download(old, c, 4 * m * n);
    if (of->bias)
        failed |= download(bias, of->bias, 4 * m);
    for (int64_t row = 0; row < m && !of->by_vector; row++)
        scale[row] = *alpha;
    if (of->by_vector)
        failed |= download(scale, (uint64_t)alpha, 4 * m);
    for (int64_t at = 0; at < m * n; at++) {
        float sum = 0;
        for (int64_t i = 0; i < k; i++)
            sum += left[at / n * k + i] * right[i * n + at % n];
        out[at] = scale[at / n] * sum + *beta * old[at] + bias[at / n];
        if (of->relu && out[at] < 0)
            out[at] = 0;
    }
    failed |= upload(d, out, 4 * m * n);
    free(left), free(right), free(old), free(out), free(bias), free(scale);
    return failed ? INVALID : OK;
}

int cusparseLtMatmulSearch(const struct any *handle, struct plan *plan, const float *alpha, uint64_t a, uint64_t b,
                           const float *beta, uint64_t c, uint64_t d, uint64_t workspace, void **streams, int count) {
    int status = cusparseLtMatmul(handle, plan, alpha, a, b, beta, c, d, workspace, streams, count);
    if (status == OK)
        plan->selection.split = 2;
    return status;
}

int cusparseLtSpMMACompressedSize2(const struct any *handle, const struct matrix *matrix, size_t *bytes, size_t *buffer) {
    if (!is(matrix, MATRIX) || !matrix->sparse)
        return INVALID;
    *bytes = 4 * matrix->rows * matrix->cols;
    *buffer = 32;
    return OK;
}

int cusparseLtSpMMACompress2(const struct any *handle, const struct matrix *matrix, int first, int op, uint64_t source,
                             uint64_t target, uint64_t buffer, void *stream) {
    if (!is(matrix, MATRIX) || !matrix->sparse || first != 1 || op || !buffer || !stream)
        return INVALID;
    size_t bytes = 4 * matrix->rows * matrix->cols;
    char *data = malloc(bytes);
    int failed = download(data, source, bytes) | upload(target, data, bytes);
    free(data);
    return failed ? INVALID : OK;
}
