/* A stand-in for libnccl.so.2: ranks in any processes of one host, joined at rank 0 by sockets. Sums of single precision,
 * copies, and what groups ask: nothing of a group happens before it ends. */

#include "standin.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { OK = 0, UNHANDLED = 1, SYSTEM = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum { FLOAT = 7, SUM = 0, MOST = 64, RANKS = 8 };

typedef struct {
    unsigned char internal[128];
} ncclUniqueId;

/* The beginning of ncclConfig_t. */
struct config {
    size_t size;
    unsigned magic, version;
    int blocking, cluster, least, most;
    const char *network;
};

struct comm {
    unsigned magic;
    int ranks, rank, suspended;
    /* Rank 0 has a line to everybody, the others to rank 0. */
    int lines[RANKS];
};

static unsigned char checksum(const ncclUniqueId *id) {
    unsigned char sum = 7;
    for (int at = 0; at < 127; at++)
        sum = sum * 31 + id->internal[at];
    return sum;
}

int ncclGetUniqueId(ncclUniqueId *id) {
    FILE *random = fopen("/dev/urandom", "r");
    if (!random || fread(id->internal, 1, 127, random) != 127)
        return SYSTEM;
    fclose(random);
    id->internal[127] = checksum(id);
    return OK;
}

static int all(int line, void *data, size_t bytes, int out) {
    for (size_t done = 0; done < bytes;) {
        ssize_t now = out ? send(line, (char *)data + done, bytes - done, MSG_NOSIGNAL)
                          : recv(line, (char *)data + done, bytes - done, 0);
        if (now <= 0)
            return SYSTEM;
        done += now;
    }
    return OK;
}

static int join(struct comm **out, int ranks, const ncclUniqueId *id, int rank) {
    if (ranks < 1 || ranks > RANKS || rank < 0 || rank >= ranks)
        return INVALID_ARGUMENT;
    /* The structure came by value: every byte is looked at. */
    if (id->internal[127] != checksum(id))
        return INVALID_ARGUMENT;
    struct comm *comm = calloc(1, sizeof *comm);
    comm->magic = 0xc033;
    comm->ranks = ranks;
    comm->rank = rank;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    for (int at = 0; at < 40; at++)
        sprintf(address.sun_path + 1 + 2 * at, "%02x", id->internal[at]);
    socklen_t length = offsetof(struct sockaddr_un, sun_path) + 81;
    int socket_ = socket(AF_UNIX, SOCK_STREAM, 0);
    struct timeval patience = {20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (rank) {
        int tries = 0;
        while (connect(socket_, (struct sockaddr *)&address, length)) {
            if (++tries > 2000)
                return SYSTEM;
            usleep(10000);
        }
        comm->lines[0] = socket_;
        if (all(socket_, &rank, sizeof rank, 1))
            return SYSTEM;
    } else {
        if (bind(socket_, (struct sockaddr *)&address, length) || listen(socket_, RANKS))
            return SYSTEM;
        for (int known = 1; known < ranks; known++) {
            int line = accept(socket_, NULL, NULL), other;
            if (line < 0 || all(line, &other, sizeof other, 0) || other < 1 || other >= ranks)
                return SYSTEM;
            setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
            comm->lines[other] = line;
        }
        close(socket_);
    }
    *out = comm;
    return OK;
}

struct call {
    enum { JOIN, ALL_REDUCE, BROADCAST, SEND, RECEIVE } what;
    struct comm **made, *comm;
    int ranks, rank, peer;
    ncclUniqueId id;
    uint64_t from, to;
    size_t count;
};

static _Thread_local struct call group[MOST];
static _Thread_local int depth, collected;

static int perform(struct call *call) {
    if (call->what == JOIN)
        return join(call->made, call->ranks, &call->id, call->rank);
    struct comm *comm = call->comm;
    size_t bytes = call->count * 4;
    float *mine = malloc(bytes), *theirs = malloc(bytes);
    int status = OK;
    if (call->what != RECEIVE)
        status = download(mine, call->from, bytes) ? UNHANDLED : OK;
    switch (call->what) {
    case ALL_REDUCE:
        for (int rank = 1; !status && !comm->rank && rank < comm->ranks; rank++) {
            status = all(comm->lines[rank], theirs, bytes, 0);
            for (size_t at = 0; at < call->count; at++)
                mine[at] += theirs[at];
        }
        if (!status && comm->rank)
            status = all(comm->lines[0], mine, bytes, 1) || all(comm->lines[0], mine, bytes, 0) ? SYSTEM : OK;
        for (int rank = 1; !status && !comm->rank && rank < comm->ranks; rank++)
            status = all(comm->lines[rank], mine, bytes, 1);
        break;
    case BROADCAST:
        for (int rank = 1; !status && !comm->rank && rank < comm->ranks; rank++)
            status = all(comm->lines[rank], mine, bytes, 1);
        if (!status && comm->rank)
            status = all(comm->lines[0], mine, bytes, 0);
        break;
    case SEND:
        status = status ? status : all(comm->lines[comm->rank ? 0 : call->peer], mine, bytes, 1);
        break;
    default:
        status = all(comm->lines[comm->rank ? 0 : call->peer], mine, bytes, 0);
    }
    if (!status && call->what != SEND)
        status = upload(call->to, mine, bytes) ? UNHANDLED : OK;
    free(mine);
    free(theirs);
    return status;
}

static int issue(struct call call) {
    if (call.what != JOIN && (!call.comm || call.comm->magic != 0xc033))
        return INVALID_ARGUMENT;
    if (!depth)
        return perform(&call);
    if (collected == MOST)
        return INVALID_USAGE;
    group[collected++] = call;
    return OK;
}

int ncclGroupStart(void) {
    depth++;
    return OK;
}

int ncclGroupEnd(void) {
    if (!depth)
        return INVALID_USAGE;
    if (--depth)
        return OK;
    int status = OK, count = collected;
    collected = 0;
    /* What is sent goes first, so that nobody waits for somebody who waits; one line carries all in this order. */
    for (int turn = 0; turn < 3; turn++)
        for (int at = 0; at < count; at++)
            if ((group[at].what == SEND ? 0 : group[at].what == RECEIVE ? 1 : 2) == turn) {
                int one = perform(&group[at]);
                status = status ? status : one;
            }
    return status;
}

int ncclCommInitRank(struct comm **comm, int ranks, ncclUniqueId id, int rank) {
    return issue((struct call){.what = JOIN, .made = comm, .ranks = ranks, .rank = rank, .id = id});
}

int ncclCommInitRankConfig(struct comm **comm, int ranks, ncclUniqueId id, int rank, const struct config *config) {
    if (!config || config->magic != 0xcafebeef || config->blocking != 1 || config->network || config->most != 77)
        return INVALID_ARGUMENT;
    return ncclCommInitRank(comm, ranks, id, rank);
}

/* Of what is left there is one rank here: it needs nobody. */
int ncclCommShrink(struct comm *comm, const int *excluded, int count, struct comm **made, const struct config *config,
                   int flags) {
    if (!comm || comm->magic != 0xc033 || !excluded || config || flags & ~1)
        return INVALID_ARGUMENT;
    if (comm->ranks - count != 1)
        return INVALID_USAGE;
    for (int at = 0; at < count; at++)
        if (excluded[at] < 0 || excluded[at] >= comm->ranks || excluded[at] == comm->rank)
            return INVALID_ARGUMENT;
    ncclUniqueId id;
    int status = ncclGetUniqueId(&id);
    return status ? status : ncclCommInitRank(made, 1, id, 0);
}

/* A communicator that is suspended has given its memory back: a mebibyte for each rank. */
int ncclCommSuspend(struct comm *comm, int flags) {
    if (!comm || comm->magic != 0xc033 || flags != 1 || comm->suspended)
        return INVALID_ARGUMENT;
    comm->suspended = 1;
    return OK;
}

int ncclCommResume(struct comm *comm) {
    if (!comm || comm->magic != 0xc033 || !comm->suspended)
        return INVALID_USAGE;
    comm->suspended = 0;
    return OK;
}

int ncclCommMemStats(struct comm *comm, int statistic, uint64_t *value) {
    if (statistic < 0 || statistic > 3)
        return INVALID_ARGUMENT;
    uint64_t held = comm->suspended ? 0 : (uint64_t)comm->ranks << 20;
    *value = statistic == 1 ? (uint64_t)comm->suspended : statistic == 2 ? 0 : held;
    return OK;
}

int ncclCommRevoke(struct comm *comm, int flags) {
    return comm && comm->magic == 0xc033 && !flags ? OK : INVALID_ARGUMENT;
}

int ncclCommCount(struct comm *comm, int *count) {
    *count = comm->ranks;
    return OK;
}

int ncclCommUserRank(struct comm *comm, int *rank) {
    *rank = comm->rank;
    return OK;
}

int ncclCommGetAsyncError(struct comm *comm, int *error) {
    *error = OK;
    return comm->magic == 0xc033 ? OK : INVALID_ARGUMENT;
}

int ncclCommDestroy(struct comm *comm) {
    if (comm->magic != 0xc033)
        return INVALID_ARGUMENT;
    comm->magic = 0;
    for (int at = 0; at < RANKS; at++)
        if (comm->lines[at])
            close(comm->lines[at]);
    free(comm);
    return OK;
}

/* The operator's factor is read at once where it lies on the host. */
int ncclRedOpCreatePreMulSum(int *operation, const void *scalar, int type, int residence, struct comm *comm) {
    if (comm->magic != 0xc033 || residence != 1)
        return INVALID_ARGUMENT;
    *operation = type == 8 ? (int)*(const double *)scalar : (int)*(const float *)scalar;
    return OK;
}

int ncclAllReduce(uint64_t from, uint64_t to, size_t count, int type, int operation, struct comm *comm, void *stream) {
    if (type != FLOAT || operation != SUM)
        return INVALID_ARGUMENT;
    return issue((struct call){.what = ALL_REDUCE, .comm = comm, .from = from, .to = to, .count = count});
}

int ncclBroadcast(uint64_t from, uint64_t to, size_t count, int type, int root, struct comm *comm, void *stream) {
    if (type != FLOAT || root)
        return INVALID_ARGUMENT;
    return issue((struct call){.what = BROADCAST, .comm = comm, .from = from, .to = to, .count = count});
}

int ncclSend(uint64_t from, size_t count, int type, int peer, struct comm *comm, void *stream) {
    if (type != FLOAT || !depth)
        return INVALID_USAGE;
    return issue((struct call){.what = SEND, .comm = comm, .from = from, .count = count, .peer = peer});
}

int ncclRecv(uint64_t to, size_t count, int type, int peer, struct comm *comm, void *stream) {
    if (type != FLOAT || !depth)
        return INVALID_USAGE;
    return issue((struct call){.what = RECEIVE, .comm = comm, .to = to, .count = count, .peer = peer});
}
