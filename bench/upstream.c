/* An upstream with minimal cost: it answers every POST with the events of a script, each at its time.

       upstream API NAME:MICROSECONDS:FILE ...

   prints the port that it listens on. A request for /NAME/..., or with another path and the model NAME, gets the events
   of FILE, which are separated by blank lines: the first at once, the others with MICROSECONDS between them; 0: at full
   speed. ~0000000000000000 in an event is replaced by the time, in microseconds of the monotonic clock. Requests whose
   path does not end in API get 404. Every GET, such as a health check, gets the list of models. Linux only. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS 65536
#define SCRIPTS 32
#define FILLED 4096    /* bytes kept ready for a stream at full speed */
#define OUT (64 * 1024)
#define HEAD (16 * 1024)

static const char STAMP[] = "~0000000000000000";
static const char STARTED[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
static const char ENDED[] = "0\r\n\r\n";
static const char UNKNOWN[] = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
static const char LISTED[] =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n";

struct frame { char *bytes; size_t size; char *stamp; };
struct script { const char *name; int64_t interval; struct frame *frames; size_t count; };
struct connection {
    int fd, polled;
    struct script *script;    /* script being sent; NULL: no request yet */
    size_t next;              /* index of the next frame */
    int64_t due;
    char head[HEAD];          /* request head received so far */
    size_t head_size, body_size, body_left;
    char *body;               /* body received so far; NULL: the path names the script */
    char *out;
    size_t out_size, out_sent;
};

static const char *api;
static struct script scripts[SCRIPTS];
static size_t script_count;
static struct connection *connections[CONNECTIONS];
static int highest = -1, epoll, timer;

static void fail(const char *what) { perror(what); exit(1); }

static int64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void add_frame(struct script *s, const char *event, size_t size) {
    struct frame *f;
    s->frames = realloc(s->frames, (s->count + 1) * sizeof *s->frames);
    f = &s->frames[s->count++];
    f->bytes = malloc(size + 32);
    f->size = (size_t)sprintf(f->bytes, "%zx\r\n", size);
    memcpy(f->bytes + f->size, event, size);
    f->size += size;
    memcpy(f->bytes + f->size, "\r\n", 2);
    f->size += 2;
    f->stamp = memmem(f->bytes, f->size, STAMP, sizeof STAMP - 1);
}

static void load(char *spec) {
    struct script *s = &scripts[script_count++];
    char *interval = strchr(spec, ':'), *path = interval ? strchr(interval + 1, ':') : NULL, *text, *end, *at;
    long size;
    FILE *file;
    if (!path || script_count > SCRIPTS) { fprintf(stderr, "NAME:MICROSECONDS:FILE\n"); exit(2); }
    *interval = *path = 0;
    s->name = spec;
    s->interval = atoll(interval + 1);
    if (!(file = fopen(path + 1, "rb"))) fail(path + 1);
    fseek(file, 0, SEEK_END);
    size = ftell(file);
    rewind(file);
    text = malloc((size_t)size);
    if (fread(text, 1, (size_t)size, file) != (size_t)size) fail("read");
    fclose(file);
    for (at = text; (end = memmem(at, (size_t)(text + size - at), "\n\n", 2)); at = end + 2)
        add_frame(s, at, (size_t)(end + 2 - at));
    free(text);
}

static void watch(struct connection *c) {
    int wanted = c->out_sent < c->out_size ? EPOLLIN | EPOLLOUT : EPOLLIN;
    struct epoll_event e = {.events = (uint32_t)wanted, .data.fd = c->fd};
    if (wanted != c->polled && epoll_ctl(epoll, c->polled ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &e)) fail("epoll_ctl");
    c->polled = wanted;
}

static void drop(struct connection *c) {
    connections[c->fd] = NULL;
    close(c->fd);
    free(c->out);
    free(c->body);
    free(c);
}

static void put(struct connection *c, const char *bytes, size_t size) {
    memcpy(c->out + c->out_size, bytes, size);
    c->out_size += size;
}

/* Append the next frame of the script; after the last one, the end of the response. */
static void put_frame(struct connection *c) {
    struct frame *f = &c->script->frames[c->next++];
    if (c->out_size + f->size + sizeof ENDED > OUT) { fprintf(stderr, "a paced stream is not read\n"); exit(1); }
    if (f->stamp) {
        char digits[32];
        snprintf(digits, sizeof digits, "%016lld", (long long)now());
        memcpy(f->stamp + 1, digits, 16);
    }
    put(c, f->bytes, f->size);
    if (c->next == c->script->count) {
        put(c, ENDED, sizeof ENDED - 1);
        c->script = NULL;
    }
}

/* Return whether the connection is still open. */
static int flush(struct connection *c) {
    for (;;) {
        if (c->script && !c->script->interval)
            while (c->script && c->out_size - c->out_sent < FILLED && c->out_size < OUT / 2) put_frame(c);
        if (c->out_sent == c->out_size) break;
        ssize_t sent = send(c->fd, c->out + c->out_sent, c->out_size - c->out_sent, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno == EAGAIN) break;
            drop(c);
            return 0;
        }
        c->out_sent += (size_t)sent;
        if (c->out_sent == c->out_size) c->out_sent = c->out_size = 0;
    }
    watch(c);
    return 1;
}

static int is_of_api(const char *head) {
    const char *path = strchr(head, '/');
    size_t size = path ? strcspn(path, " ?\r") : 0, wanted = strlen(api);
    return size >= wanted && !strncmp(path + size - wanted, api, wanted);
}

static struct script *script_in_path(const char *head) {
    char *path = strchr(head, '/');
    for (size_t n = 0; path && n < script_count; n++) {
        size_t size = strlen(scripts[n].name);
        if (!strncmp(path + 1, scripts[n].name, size) && path[size + 1] == '/') return &scripts[n];
    }
    return NULL;
}

static struct script *script_of_model(const char *body, size_t size) {
    for (size_t n = 0; body && n < script_count; n++) {
        char field[128];
        for (int spaced = 0; spaced < 2; spaced++) {
            snprintf(field, sizeof field, "\"model\":%s\"%s\"", spaced ? " " : "", scripts[n].name);
            if (memmem(body, size, field, strlen(field))) return &scripts[n];
        }
    }
    return NULL;
}

/* List all models; below /NAME/, only the model NAME. */
static void list_models(struct connection *c, struct script *only) {
    char list[OUT / 4] = "{\"object\":\"list\",\"data\":[", head[256];
    size_t size = strlen(list), first = only ? (size_t)(only - scripts) : 0, end = only ? first + 1 : script_count;
    for (size_t n = first; n < end; n++)
        size += (size_t)snprintf(list + size, sizeof list - size,
                                 "%s{\"id\":\"%s\",\"object\":\"model\",\"created\":1,\"owned_by\":\"bench\"}",
                                 n > first ? "," : "", scripts[n].name);
    size += (size_t)snprintf(list + size, sizeof list - size, "]}");
    put(c, head, (size_t)snprintf(head, sizeof head, LISTED, size));
    put(c, list, size);
}

static void begin(struct connection *c) {
    static uint64_t begun;
    struct script *s = script_in_path(c->head);
    if (!strncmp(c->head, "GET ", 4)) { list_models(c, s); return; }
    if (!s) s = script_of_model(c->body, c->body_size);
    if (s && !is_of_api(c->head)) s = NULL;
    free(c->body);
    c->body = NULL;
    if (!s) {
        put(c, UNKNOWN, sizeof UNKNOWN - 1);
        return;
    }
    c->script = s;
    c->next = 0;
    put(c, STARTED, sizeof STARTED - 1);
    put_frame(c);
    /* Spread the events of streams that begin together. */
    c->due = now() + s->interval + (int64_t)((double)s->interval * (double)(++begun * 618 % 1000) / 1000);
}

static void take_body(struct connection *c, const char *bytes, size_t size) {
    if (size > c->body_left) size = c->body_left;
    if (c->body) memcpy(c->body + c->body_size, bytes, size);
    c->body_size += size;
    c->body_left -= size;
    if (!c->body_left) begin(c);
}

/* A request is complete with its head and the number of bytes in content-length. */
static void take(struct connection *c, const char *bytes, size_t size) {
    if (c->body_left) {
        take_body(c, bytes, size);
        return;
    }
    size_t room = HEAD - 1 - c->head_size, kept = size < room ? size : room, before = c->head_size;
    memcpy(c->head + c->head_size, bytes, kept);
    c->head_size += kept;
    c->head[c->head_size] = 0;
    char *end = strstr(c->head, "\r\n\r\n"), *length = strcasestr(c->head, "\r\ncontent-length:");
    if (!end) {
        if (kept < size) { fprintf(stderr, "a head that is too long\n"); exit(1); }
        return;
    }
    size_t head = (size_t)(end + 4 - c->head) - before; /* bytes of this read that belong to the head */
    c->body_left = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    c->body_size = c->head_size = 0;
    if (c->body_left && !script_in_path(c->head)) c->body = malloc(c->body_left);
    take_body(c, bytes + head, size - head);
}

static void read_available(struct connection *c) {
    static char bytes[256 * 1024];
    ssize_t size = recv(c->fd, bytes, sizeof bytes, 0);
    int http2 = size > 3 && !c->head_size && !c->body_left && !memcmp(bytes, "PRI ", 4); /* as a probe for gRPC */
    if (size == 0 || http2 || (size < 0 && errno != EAGAIN)) { drop(c); return; }
    if (size > 0) {
        take(c, bytes, (size_t)size);
        flush(c);
    }
}

static void welcome(int listener) {
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= CONNECTIONS) { fprintf(stderr, "too many connections\n"); exit(1); }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *c = calloc(1, sizeof *c);
        c->fd = fd;
        c->out = malloc(OUT);
        connections[fd] = c;
        if (fd > highest) highest = fd;
        watch(c);
    }
}

/* Send the events that are due, and set the timer for the next one. */
static void speak(void) {
    int64_t next = INT64_MAX, time = now();
    for (int fd = 0; fd <= highest; fd++) {
        struct connection *c = connections[fd];
        if (!c || !c->script || !c->script->interval) continue;
        if (c->due <= time) {
            c->due += c->script->interval;
            put_frame(c);
            if (!flush(c) || !c->script) continue;
        }
        if (c->due < next) next = c->due;
    }
    if (next == INT64_MAX) next = time + 1000000;
    struct itimerspec t = {.it_value = {next / 1000000, next % 1000000 * 1000}};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL);
}

int main(int argc, char **argv) {
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof where;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (argc < 2) { fprintf(stderr, "API NAME:MICROSECONDS:FILE ...\n"); return 2; }
    api = argv[1];
    for (int n = 2; n < argc; n++) load(argv[n]);
    if (bind(listener, (struct sockaddr *)&where, size) || listen(listener, 4096)) fail("listen");
    getsockname(listener, (struct sockaddr *)&where, &size);
    printf("%d\n", ntohs(where.sin_port));
    fflush(stdout);
    epoll = epoll_create1(0);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &e);
    e.data.fd = timer;
    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &e);
    for (;;) {
        struct epoll_event ready[256];
        speak();
        int count = epoll_wait(epoll, ready, 256, -1);
        for (int n = 0; n < count; n++) {
            int fd = ready[n].data.fd;
            uint64_t rings;
            if (fd == listener) welcome(listener);
            else if (fd == timer) { if (read(timer, &rings, sizeof rings) < 0 && errno != EAGAIN) fail("timer"); }
            else if (connections[fd] && (ready[n].events & ~(uint32_t)EPOLLOUT)) read_available(connections[fd]);
            else if (connections[fd]) flush(connections[fd]);
        }
    }
}
