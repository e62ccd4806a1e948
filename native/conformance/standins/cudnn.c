/* A stand-in for libcudnn.so.9: the backend API for graphs of one operation, y = x * b with b passed by value. */

#include "standin.h"

enum { OK = 0, NOT_INITIALIZED = 1001, BAD_PARAM = 2000, NULL_POINTER = 2002, NOT_SUPPORTED = 3000, FAILED = 5000 };
enum { HANDLE = 0, INT64 = 3, POINTER = 6, DESCRIPTOR = 15, BOOLEAN = 2, FRACTION = 26, CHAR = 24 };
enum { ENGINECFG = 3, HEURISTICS = 4, PLAN = 5, OPERATION = 13, GRAPH = 15, PACK = 16, TENSOR = 17 };
enum { ENGINE_INDEX = 1301, MOST = 16, SUPPORTED_ENGINE = 7 };

static _Thread_local char why[128];

static int refuse(int status, const char *text) {
    snprintf(why, sizeof why, "%s", text);
    return status;
}

void cudnnGetLastErrorString(char *text, size_t room) { snprintf(text, room, "%s", why); }

struct handle {
    uint32_t magic;
    void *stream;
};

int cudnnCreate(struct handle **handle) {
    *handle = calloc(1, sizeof **handle);
    (*handle)->magic = 0xcafe;
    return OK;
}

int cudnnDestroy(struct handle *handle) {
    if (!handle || handle->magic != 0xcafe)
        return refuse(BAD_PARAM, "no handle");
    handle->magic = 0;
    free(handle);
    return OK;
}

int cudnnSetStream(struct handle *handle, void *stream) {
    handle->stream = stream;
    return OK;
}

/* Parts are counted, as a descriptor outlives its owner's interest while another holds it. */
struct content {
    int users, type, finalized, count;
    struct attribute {
        int name, type;
        int64_t count;
        char *data;
    } attributes[MOST];
};

struct descriptor {
    uint32_t magic;
    struct content *content;
};

static size_t size_of(int type) {
    switch (type) {
    case HANDLE: case INT64: case 5: case POINTER: case DESCRIPTOR: return 8;
    case BOOLEAN: case CHAR: return 1;
    case FRACTION: return 16;
    default: return 4;
    }
}

static struct attribute *find(struct content *content, int name) {
    for (int at = 0; at < content->count; at++)
        if (content->attributes[at].name == name)
            return &content->attributes[at];
    return NULL;
}

static struct content *part(struct content *content, int name, int at) {
    struct attribute *found = find(content, name);
    return found && at < found->count ? ((struct content **)found->data)[at] : NULL;
}

static void release(struct content *content) {
    if (--content->users)
        return;
    for (int at = 0; at < content->count; at++) {
        struct attribute *one = &content->attributes[at];
        for (int64_t i = 0; one->type == DESCRIPTOR && i < one->count; i++)
            release(((struct content **)one->data)[i]);
        free(one->data);
    }
    free(content);
}

int cudnnBackendCreateDescriptor(int type, struct descriptor **out) {
    if (type < 0 || type > 50)
        return refuse(NOT_SUPPORTED, "no such type of descriptor");
    *out = calloc(1, sizeof **out);
    (*out)->magic = 0xd05c;
    (*out)->content = calloc(1, sizeof *(*out)->content);
    (*out)->content->users = 1;
    (*out)->content->type = type;
    return OK;
}

int cudnnBackendDestroyDescriptor(struct descriptor *descriptor) {
    if (!descriptor || descriptor->magic != 0xd05c)
        return refuse(BAD_PARAM, "no descriptor");
    descriptor->magic = 0;
    release(descriptor->content);
    free(descriptor);
    return OK;
}

static int put(struct content *content, int name, int type, int64_t count, const void *data) {
    struct attribute *place = find(content, name);
    if (!place) {
        if (content->count == MOST)
            return refuse(NOT_SUPPORTED, "too many attributes");
        place = &content->attributes[content->count++];
    }
    place->name = name;
    place->type = type;
    place->count = count;
    place->data = malloc(count * size_of(type) + 1);
    memcpy(place->data, data, count * size_of(type));
    return OK;
}

int cudnnBackendSetAttribute(struct descriptor *descriptor, int name, int type, int64_t count, const void *data) {
    if (descriptor->magic != 0xd05c)
        return refuse(BAD_PARAM, "no descriptor");
    if (descriptor->content->finalized)
        return refuse(NOT_INITIALIZED, "finalized");
    if (!data && count)
        return refuse(NULL_POINTER, "no elements");
    if (name == ENGINE_INDEX && *(const int64_t *)data == 99)
        return refuse(NOT_SUPPORTED, "there is no engine 99");
    if (type == HANDLE && (*(struct handle *const *)data)->magic != 0xcafe)
        return refuse(BAD_PARAM, "no handle");
    if (type != DESCRIPTOR)
        return put(descriptor->content, name, type, count, data);
    struct content *parts[MOST];
    for (int64_t at = 0; at < count; at++) {
        struct descriptor *one = ((struct descriptor *const *)data)[at];
        if (one->magic != 0xd05c || !one->content->finalized)
            return refuse(BAD_PARAM, "a part is not finalized");
        parts[at] = one->content;
        parts[at]->users++;
    }
    return put(descriptor->content, name, type, count, parts);
}

static int64_t number(struct content *content, int name) {
    struct attribute *found = find(content, name);
    return found && found->type == INT64 && found->count == 1 ? *(int64_t *)found->data : -1;
}

int cudnnBackendFinalize(struct descriptor *descriptor) {
    struct content *content = descriptor->content;
    struct attribute *ids = find(content, 1000), *pointers = find(content, 1001);
    switch (content->type) {
    case TENSOR: {
        struct attribute *dims = find(content, 902), *strides = find(content, 903), *type = find(content, 901);
        if (!dims || !strides || dims->count != strides->count || !type || type->type != 1 || number(content, 906) < 0)
            return refuse(BAD_PARAM, "a tensor says too little");
        break;
    }
    case OPERATION:
        if (!part(content, 750, 0) || !part(content, 751, 0) || !part(content, 752, 0) || !part(content, 753, 0))
            return refuse(BAD_PARAM, "an operation says too little");
        break;
    case GRAPH:
        if (!find(content, 800) || !part(content, 801, 0) || part(content, 801, 0)->type != OPERATION)
            return refuse(BAD_PARAM, "a graph says too little");
        break;
    case HEURISTICS:
        if (!part(content, 201, 0) || !find(content, 200))
            return refuse(BAD_PARAM, "heuristics say too little");
        break;
    case PLAN: {
        struct content *config = part(content, 401, 0);
        if (!config || !find(content, 400))
            return refuse(BAD_PARAM, "a plan says too little");
        if (number(config, ENGINE_INDEX) != SUPPORTED_ENGINE)
            return refuse(NOT_SUPPORTED, "this engine does not run here");
        break;
    }
    case PACK:
        if (!ids || !pointers || ids->count != pointers->count || ids->type != INT64 || pointers->type != POINTER)
            return refuse(BAD_PARAM, "ids and pointers differ");
        break;
    }
    content->finalized = 1;
    return OK;
}

/* Heuristics name two engines; the second one's plans are refused. They fill descriptors that the caller made. */
int cudnnBackendGetAttribute(struct descriptor *descriptor, int name, int type, int64_t wanted, int64_t *count, void *out) {
    struct content *content = descriptor->content;
    if (descriptor->magic != 0xd05c || !content->finalized)
        return refuse(NOT_INITIALIZED, "not finalized");
    if (content->type == HEURISTICS && name == 202 && type == DESCRIPTOR) {
        *count = 2;
        for (int64_t at = 0; out && at < wanted && at < 2; at++) {
            struct descriptor *target = ((struct descriptor **)out)[at];
            int64_t engine = SUPPORTED_ENGINE + at;
            if (target->magic != 0xd05c || target->content->type != ENGINECFG)
                return refuse(BAD_PARAM, "no room for a configuration");
            put(target->content, ENGINE_INDEX, INT64, 1, &engine);
            struct content *graph = part(content, 201, 0);
            graph->users++;
            put(target->content, 300, DESCRIPTOR, 1, &graph);
            target->content->finalized = 1;
        }
        return OK;
    }
    int64_t workspace = 64;
    struct attribute known = {name, INT64, 1, (char *)&workspace};
    struct attribute *found = content->type == PLAN && name == 402 ? &known : find(content, name);
    if (!found || found->type != type)
        return refuse(BAD_PARAM, "no such attribute");
    if (count)
        *count = found->count;
    if (out)
        memcpy(out, found->data, (wanted < found->count ? wanted : found->count) * size_of(type));
    return OK;
}

static void *pointer(struct content *pack, int64_t id) {
    struct attribute *ids = find(pack, 1000), *pointers = find(pack, 1001);
    for (int64_t at = 0; at < ids->count; at++)
        if (((int64_t *)ids->data)[at] == id)
            return ((void **)pointers->data)[at];
    return NULL;
}

int cudnnBackendExecute(struct handle *handle, struct descriptor *plan, struct descriptor *pack) {
    if (!handle || handle->magic != 0xcafe || plan->magic != 0xd05c || pack->magic != 0xd05c)
        return refuse(BAD_PARAM, "no handle, plan or pack");
    if (!plan->content->finalized || !pack->content->finalized || plan->content->type != PLAN)
        return refuse(BAD_PARAM, "not finalized");
    struct content *operation = part(part(part(plan->content, 401, 0), 300, 0), 801, 0);
    struct content *x = part(operation, 751, 0), *b = part(operation, 752, 0), *y = part(operation, 753, 0);
    struct attribute *dims = find(x, 902), *by_value = find(b, 908), *alpha = find(operation, 754);
    if (!by_value || by_value->type != BOOLEAN || by_value->data[0] != 1)
        return refuse(NOT_SUPPORTED, "b is not passed by value");
    int64_t length = 1;
    for (int64_t at = 0; at < dims->count; at++)
        length *= ((int64_t *)dims->data)[at];
    float *data = malloc(length * sizeof *data), *factor = pointer(pack->content, number(b, 906));
    uint64_t from = (uint64_t)pointer(pack->content, number(x, 906)), to = (uint64_t)pointer(pack->content, number(y, 906));
    if (!from || !to || !factor || !find(pack->content, 1003))
        return refuse(BAD_PARAM, "the pack misses a pointer");
    double scale = alpha && alpha->type == 5 ? *(double *)alpha->data : 1;
    int status = download(data, from, length * sizeof *data);
    for (int64_t at = 0; at < length; at++)
        data[at] *= *factor * scale;
    status = status ? status : upload(to, data, length * sizeof *data);
    free(data);
    return status ? refuse(FAILED, "a copy failed") : OK;
}

/* Functions of one call: descriptors of tensors, and three that compute. */

struct tensor {
    uint32_t magic;
    int type, count, dims[8], strides[8];
};

int cudnnCreateTensorDescriptor(struct tensor **out) {
    *out = calloc(1, sizeof **out);
    (*out)->magic = 0x7e50;
    return OK;
}

int cudnnDestroyTensorDescriptor(struct tensor *tensor) {
    if (!tensor || tensor->magic != 0x7e50)
        return refuse(BAD_PARAM, "no tensor");
    tensor->magic = 0;
    free(tensor);
    return OK;
}

int cudnnSetTensorNdDescriptor(struct tensor *tensor, int type, int count, const int *dims, const int *strides) {
    if (tensor->magic != 0x7e50 || count < 3 || count > 8)
        return refuse(BAD_PARAM, "a tensor has three to eight dimensions");
    tensor->type = type;
    tensor->count = count;
    memcpy(tensor->dims, dims, count * sizeof *dims);
    memcpy(tensor->strides, strides, count * sizeof *strides);
    return OK;
}

int cudnnSetTensor4dDescriptor(struct tensor *tensor, int format, int type, int n, int c, int h, int w) {
    int dims[] = {n, c, h, w}, strides[] = {c * h * w, h * w, w, 1};
    return format == 0 ? cudnnSetTensorNdDescriptor(tensor, type, 4, dims, strides) : refuse(NOT_SUPPORTED, "format");
}

int cudnnGetTensorNdDescriptor(struct tensor *tensor, int wanted, int *type, int *count, int *dims, int *strides) {
    *type = tensor->type;
    *count = tensor->count;
    memcpy(dims, tensor->dims, (wanted < tensor->count ? wanted : tensor->count) * sizeof *dims);
    memcpy(strides, tensor->strides, (wanted < tensor->count ? wanted : tensor->count) * sizeof *strides);
    return OK;
}

static size_t elements(struct tensor *tensor) {
    size_t product = 1;
    for (int at = 0; at < tensor->count; at++)
        product *= tensor->dims[at];
    return product;
}

/* c = alpha * a + beta * c, with scalars in double precision where the tensors are. */
int cudnnAddTensor(struct handle *handle, const void *alpha, struct tensor *a, uint64_t from, const void *beta,
                   struct tensor *c, uint64_t to) {
    if (handle->magic != 0xcafe || a->magic != 0x7e50 || c->magic != 0x7e50 || elements(a) != elements(c))
        return refuse(BAD_PARAM, "tensors differ");
    int wide = c->type == 1;
    size_t count = elements(a), bytes = count * (wide ? 8 : 4);
    char *x = malloc(bytes), *y = malloc(bytes);
    int status = download(x, from, bytes);
    status = status ? status : download(y, to, bytes);
    for (size_t at = 0; at < count; at++) {
        if (wide)
            ((double *)y)[at] = *(double *)alpha * ((double *)x)[at] + *(double *)beta * ((double *)y)[at];
        else
            ((float *)y)[at] = *(float *)alpha * ((float *)x)[at] + *(float *)beta * ((float *)y)[at];
    }
    status = status ? status : upload(to, y, bytes);
    free(x);
    free(y);
    return status ? refuse(FAILED, "a copy failed") : OK;
}

/* One channel: y = alpha * ((x - mean) / (variance + epsilon) * scale + bias). */
int cudnnBatchNormalizationForwardInference(struct handle *handle, int mode, const float *alpha, const float *beta,
                                            struct tensor *xdesc, uint64_t x, struct tensor *ydesc, uint64_t y,
                                            struct tensor *one, uint64_t scale, uint64_t bias, uint64_t mean,
                                            uint64_t variance, double epsilon) {
    if (mode != 1 || *beta != 0 || xdesc->magic != 0x7e50 || ydesc->magic != 0x7e50 || elements(one) != 1)
        return refuse(BAD_PARAM, "arguments came to the wrong places");
    float parts[4];
    uint64_t places[] = {scale, bias, mean, variance};
    for (int at = 0; at < 4; at++)
        if (download(&parts[at], places[at], 4))
            return refuse(FAILED, "a copy failed");
    size_t count = elements(xdesc);
    float *data = malloc(count * 4);
    int status = download(data, x, count * 4);
    for (size_t at = 0; at < count; at++)
        data[at] = *alpha * ((data[at] - parts[2]) / (parts[3] + (float)epsilon) * parts[0] + parts[1]);
    status = status ? status : upload(y, data, count * 4);
    free(data);
    return status ? refuse(FAILED, "a copy failed") : OK;
}

struct dropout {
    float rate;
};

int cudnnCreateDropoutDescriptor(struct dropout **out) {
    *out = calloc(1, sizeof **out);
    return OK;
}

int cudnnDestroyDropoutDescriptor(struct dropout *dropout) {
    free(dropout);
    return OK;
}

int cudnnDropoutGetStatesSize(struct handle *handle, size_t *bytes) {
    *bytes = handle->magic == 0xcafe ? 8 : 0;
    return OK;
}

/* The states are set when this is called. */
int cudnnSetDropoutDescriptor(struct dropout *dropout, struct handle *handle, float rate, uint64_t states, size_t bytes,
                              uint64_t seed) {
    if (handle->magic != 0xcafe || bytes != 8)
        return refuse(BAD_PARAM, "arguments came to the wrong places");
    dropout->rate = rate;
    seed += (uint64_t)(rate * 1000);
    return upload(states, &seed, 8) ? refuse(FAILED, "a copy failed") : OK;
}

struct ctc {
    int gradient;
};

int cudnnCreateCTCLossDescriptor(struct ctc **out) {
    *out = calloc(1, sizeof **out);
    return OK;
}

int cudnnDestroyCTCLossDescriptor(struct ctc *loss) {
    free(loss);
    return OK;
}

int cudnnSetCTCLossDescriptorEx(struct ctc *loss, int compute, int normalization, int gradient) {
    loss->gradient = compute == 0 && normalization == 1 ? gradient : -1;
    return OK;
}

int cudnnGetCTCLossWorkspaceSize(struct handle *handle, struct tensor *probabilities, struct tensor *gradients,
                                 const int *labels, const int *label_lengths, const int *input_lengths, int algorithm,
                                 struct ctc *loss, size_t *bytes) {
    if (handle->magic != 0xcafe || probabilities->magic != 0x7e50 || gradients || algorithm != 1 || loss->gradient != 3)
        return refuse(BAD_PARAM, "arguments came to the wrong places");
    int count = 0, longest = 0;
    for (int at = 0; at < probabilities->dims[1]; at++) {
        if (label_lengths[at] > input_lengths[at])
            return refuse(BAD_PARAM, "more labels than inputs");
        count += label_lengths[at];
        longest = longest > input_lengths[at] ? longest : input_lengths[at];
    }
    *bytes = (size_t)longest * 1000 + (count ? labels[count - 1] : 0);
    return OK;
}

/* The cost of a sample is told by its labels, read from host arrays: no probability is looked at. */
int cudnnCTCLoss(struct handle *handle, struct tensor *probabilities, uint64_t data, const int *labels,
                 const int *label_lengths, const int *input_lengths, uint64_t costs, struct tensor *gradients,
                 uint64_t gradient, int algorithm, struct ctc *loss, uint64_t work, size_t bytes) {
    size_t wanted = 0;
    int status = cudnnGetCTCLossWorkspaceSize(handle, probabilities, gradients, labels, label_lengths, input_lengths,
                                              algorithm, loss, &wanted);
    if (status)
        return status;
    if (!data || gradient || !work || bytes != wanted)
        return refuse(BAD_PARAM, "arguments came to the wrong places");
    int samples = probabilities->dims[1];
    float *found = calloc(samples, sizeof *found);
    for (int at = 0; at < samples; at++) {
        for (int i = 0; i < label_lengths[at]; i++)
            found[at] += *labels++;
        found[at] += 100 * input_lengths[at];
    }
    status = upload(costs, found, samples * sizeof *found);
    free(found);
    return status ? refuse(FAILED, "a copy failed") : OK;
}
