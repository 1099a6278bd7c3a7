/* Many clients at once: each sends the requests of a session over its connection, and reads the responses.

       client PORT REQUEST_FILE CONNECTIONS

   REQUEST_FILE has one or more HTTP requests with a content-length. Each client sends them in turn, and then begins the
   next session with the first one. The clients start at different requests, so that the mix of requests is always the
   same. @0000000000000000 in a request is replaced by the number of the session, so that no two sessions are alike.

   prints `open` when each client has received its first event. From then on it counts, until its standard input ends;
   then it prints one line: EVENTS RESPONSES SECONDS P50 P99 READS STREAMS. An event is one time stamp of the upstream (~
   and sixteen digits). P50 and P99 are the microseconds from the upstream to the client. READS are the reads with an
   event: fewer than the events if a server has grouped some. STREAMS are the clients with an event. Linux only. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DIGITS 16
#define KEPT (DIGITS + 1)
#define READ (256 * 1024)
#define STREAMS_OPENED_AT_ONCE 64
#define MAX_REQUESTS 256

static const char SESSION[] = "@0000000000000000";

struct request { char *bytes; size_t size; int has_session; };

struct connection {
    int fd, polled;
    int64_t newest;         /* the last time stamp; 0: none received */
    size_t next;            /* index of the request that is being sent */
    char *request;          /* its bytes */
    char *own;              /* room for a request with the number of the session */
    uint64_t session;
    size_t sent;            /* bytes of the request */
    char tail[KEPT];        /* last bytes received, in case a stamp is cut */
    size_t tail_size;
    char last[5];           /* the last five bytes of the response so far */
    int begun;              /* whether the response has begun */
    int counted;            /* whether an event has been counted */
};

static struct connection *all;
static struct request requests[MAX_REQUESTS];
static size_t request_count, largest, count, hearing, opened;
static int epoll, counting, port;
static uint64_t events, responses, reads, streams, sessions;
static uint32_t *waits;
static size_t wait_count, wait_room;
static int64_t began;

static void fail(const char *what) { perror(what); exit(1); }

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void watch(struct connection *c) {
    int wanted = c->sent < requests[c->next].size ? EPOLLIN | EPOLLOUT : EPOLLIN;
    struct epoll_event e = {.events = (uint32_t)wanted, .data.ptr = c};
    if (wanted != c->polled && epoll_ctl(epoll, c->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e)) fail("epoll_ctl");
    c->polled = wanted;
}

/* Write the number of the session into the client's own copy of the request. */
static void number(struct connection *c, struct request *r) {
    char digits[DIGITS + 2], *at;
    if (!c->own) c->own = malloc(largest);
    memcpy(c->own, r->bytes, r->size);
    snprintf(digits, sizeof digits, "@%016llu", (unsigned long long)c->session);
    for (at = c->own; (at = memmem(at, (size_t)(c->own + r->size - at), SESSION, KEPT)); at += KEPT)
        memcpy(at, digits, KEPT);
    c->request = c->own;
}

static void begin(struct connection *c) {
    struct request *r = &requests[c->next];
    if (!c->next || !c->session) c->session = ++sessions;
    c->request = r->bytes;
    c->sent = 0;
    if (r->has_session) number(c, r);
}

static void ask(struct connection *c) {
    ssize_t size = send(c->fd, c->request + c->sent, requests[c->next].size - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size < 0 && errno != EAGAIN) fail("send");
    if (size > 0) c->sent += (size_t)size;
    watch(c);
}

static void dial(struct connection *c) {
    struct sockaddr_in where = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(c->fd, (struct sockaddr *)&where, sizeof where)) fail("connect");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->next = (size_t)(c - all) * request_count / count % request_count;
    begin(c);
    ask(c);
}

static void note(struct connection *c, int64_t sent, int64_t time) {
    if (sent < c->newest) return; /* repeated at the end, as in Responses */
    if (!c->newest) hearing++;
    c->newest = sent;
    if (!counting) return;
    events++;
    if (!c->counted) streams++;
    c->counted = 1;
    if (wait_count == wait_room) {
        wait_room = wait_room ? 2 * wait_room : 1 << 16;
        waits = realloc(waits, wait_room * sizeof *waits);
    }
    waits[wait_count++] = time > sent ? (uint32_t)(time - sent) : 0;
}

static void find_stamps(struct connection *c, char *text, size_t size, int64_t time) {
    char *at = text, *end = text + size;
    while ((at = memchr(at, '~', (size_t)(end - at)))) {
        if (end - at < KEPT) break;
        int64_t sent = 0;
        int n = 1;
        for (; n <= DIGITS && at[n] >= '0' && at[n] <= '9'; n++) sent = sent * 10 + (at[n] - '0');
        if (n == KEPT) note(c, sent, time);
        at += n;
    }
    c->tail_size = at ? (size_t)(end - at) : 0;
    if (at) memmove(c->tail, at, c->tail_size);
}

static void read_available(struct connection *c) {
    static char buffer[KEPT + READ];
    memcpy(buffer, c->tail, c->tail_size);
    ssize_t size = recv(c->fd, buffer + c->tail_size, READ, MSG_DONTWAIT);
    int64_t time = now();
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) { fprintf(stderr, "the server has closed a connection\n"); exit(1); }
    char *came = buffer + c->tail_size;
    if (!c->begun && (size < 12 || strncmp(came + 8, " 200", 4))) {
        fprintf(stderr, "not answered: %.*s\n", (int)(size < 800 ? size : 800), came);
        exit(1);
    }
    c->begun = 1;
    if (size >= 5) memcpy(c->last, came + size - 5, 5);
    else {
        memmove(c->last, c->last + size, (size_t)(5 - size));
        memcpy(c->last + 5 - size, came, (size_t)size);
    }
    uint64_t events_before = events;
    find_stamps(c, buffer, c->tail_size + (size_t)size, time);
    if (events > events_before) reads++;
    if (!memcmp(c->last, "0\r\n\r\n", 5)) {
        if (counting) responses++;
        c->begun = 0;
        c->tail_size = 0;
        memset(c->last, 0, 5);
        c->next = (c->next + 1) % request_count;
        begin(c);
        ask(c);
    }
}

static int by_size(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(void) {
    qsort(waits, wait_count, sizeof *waits, by_size);
    printf("%llu %llu %.6f %u %u %llu %llu\n", (unsigned long long)events, (unsigned long long)responses,
           (double)(now() - began) / 1e6, wait_count ? waits[wait_count / 2] : 0,
           wait_count ? waits[wait_count * 99 / 100] : 0, (unsigned long long)reads, (unsigned long long)streams);
}

static void load(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *at = malloc(size + 1), *end = at + size;
    if (fread(at, 1, size, file) != size) fail("read");
    *end = 0;
    fclose(file);
    while (at < end) {
        char *body = strstr(at, "\r\n\r\n"), *length = strcasestr(at, "\r\ncontent-length:");
        if (!body || !length || length > body || request_count == MAX_REQUESTS) {
            fprintf(stderr, "not a list of HTTP requests: %s\n", path);
            exit(2);
        }
        struct request *r = &requests[request_count++];
        r->bytes = at;
        r->size = (size_t)(body + 4 - at) + strtoul(length + 17, NULL, 10);
        r->has_session = memmem(at, r->size, SESSION, KEPT) != NULL;
        if (r->size > largest) largest = r->size;
        at += r->size;
    }
}

int main(int argc, char **argv) {
    if (argc != 4) { fprintf(stderr, "PORT REQUEST_FILE CONNECTIONS\n"); return 2; }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(600); /* some servers need long until each client has received an event */
    port = atoi(argv[1]);
    load(argv[2]);
    count = (size_t)atoi(argv[3]);
    all = calloc(count, sizeof *all);
    epoll = epoll_create1(0);
    for (;;) {
        struct epoll_event ready[256];
        while (opened < count && opened - hearing < STREAMS_OPENED_AT_ONCE) dial(&all[opened++]);
        int number = epoll_wait(epoll, ready, 256, 20);
        for (int n = 0; n < number; n++) {
            struct connection *c = ready[n].data.ptr;
            if (!c) {
                report();
                return 0;
            }
            if (ready[n].events & EPOLLOUT) ask(c);
            if (ready[n].events & ~(uint32_t)EPOLLOUT) read_available(c);
        }
        if (!counting && hearing == count) {
            counting = 1;
            began = now();
            printf("open\n");
            fflush(stdout);
            struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL}; /* standard input, which only ends */
            epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &e);
        }
    }
}
