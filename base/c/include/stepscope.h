/*
 * libstepscope: the events of stepscope for programs in C, C++ and other languages.
 *
 * Functions return STEPSCOPE_OK (0), STEPSCOPE_ERROR (-1) or a value; stepscope_last_error() has the reason. All texts
 * are UTF-8 and end with a zero byte. While nothing is recorded, the calls do nothing.
 *
 * Threads: every function may be called on any thread at any time. A slice and a step begin and end on one thread. A
 * track may be used by several threads, but not after stepscope_track_close. No function may be called in a signal
 * handler.
 *
 * Fork: a forked child records nothing until it calls stepscope_start_after_fork(), before it starts threads. A process
 * that it becomes by exec calls stepscope_start_from_env() or stepscope_start() as any other.
 *
 * Generated from base/c/src and base/c/helpers.h: change those.
 */

#ifndef STEPSCOPE_H
#define STEPSCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The value of an argument is its `integer`.
 */
#define STEPSCOPE_INTEGER 0

/**
 * The value of an argument is its `number`.
 */
#define STEPSCOPE_NUMBER 1

/**
 * The value of an argument is its `text`.
 */
#define STEPSCOPE_TEXT 2

/**
 * The call did what it says.
 */
#define STEPSCOPE_OK 0

/**
 * The call failed; `stepscope_last_error` has the reason.
 */
#define STEPSCOPE_ERROR -1

/**
 * The number of slices that a thread may have open at once; further ones are not recorded.
 */
#define STEPSCOPE_MAX_OPEN 65536

/**
 * A stream's number where the work is on no stream.
 */
#define STEPSCOPE_NO_STREAM UINT64_MAX

/**
 * A track of the running recording.
 */
typedef struct stepscope_track stepscope_track;

/**
 * The id of a category and a name; 0 stands for names that are not known.
 */
typedef uint32_t stepscope_site_t;

/**
 * An open slice of one thread; 0: none, because nothing was recorded when it began.
 */
typedef uint64_t stepscope_slice_t;

/**
 * An argument of a slice; `stepscope_integer`, `stepscope_number` and `stepscope_text` make one.
 */
typedef struct stepscope_arg {
    /**
     * The name, UTF-8.
     */
    const char *name;
    /**
     * Which of the next three is the value: `STEPSCOPE_INTEGER`, `STEPSCOPE_NUMBER` or `STEPSCOPE_TEXT`.
     */
    uint32_t kind;
    /**
     * A whole number.
     */
    int64_t integer;
    /**
     * A number.
     */
    double number;
    /**
     * A text, UTF-8.
     */
    const char *text;
} stepscope_arg;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Why the last call of this thread that failed did so: UTF-8, never null, empty before the first failure. Valid until
 * the thread's next failure.
 */
const char *stepscope_last_error(void);

/**
 * Something happened now.
 */
void stepscope_instant(stepscope_site_t site);

/**
 * As `stepscope_instant`, with a text of at most 1,024 bytes; the rest is cut.
 *
 * Requires:
 * `text` is null, or ends with a zero byte.
 */
int stepscope_log(stepscope_site_t site, const char *text);

/**
 * A counter's value, which holds from now on.
 */
void stepscope_counter(stepscope_site_t site, double value);

/**
 * An id for a flow, from 1 to 4,294,967,295. Ids repeat only after so many.
 */
uint32_t stepscope_next_flow_id(void);

/**
 * An arrow leaves the open slice; `stepscope_flow_in` with the same site and id is its head, on any thread.
 */
void stepscope_flow_out(stepscope_site_t site, uint32_t id);

/**
 * An arrow ends in the open slice.
 */
void stepscope_flow_in(stepscope_site_t site, uint32_t id);

/**
 * Starts recording this process into `folder`, which is made if it is missing, until `stepscope_stop` or the exit of
 * the process. A thread of this process collects the events, also those of other processes that record into the folder.
 * Fails where the process records already, or the folder cannot be written or belongs to another recording.
 *
 * Requires:
 * `folder` is null, or ends with a zero byte.
 */
int stepscope_start(const char *folder);

/**
 * Starts recording into the folder that the environment variable `STEPSCOPE_TRACE` names (`stepscope record` sets it),
 * until the process exits. The process that set the variable collects the events. Returns 1, or 0 where the variable is
 * not set, or -1.
 */
int stepscope_start_from_env(void);

/**
 * Goes on recording in a forked child, into the folder of its parent, which must go on collecting: call it first in the
 * child. Slices that were open at the fork are the parent's. Returns 1, or 0 where the parent does not record, or -1.
 */
int stepscope_start_after_fork(void);

/**
 * Stops what `stepscope_start` began and completes the trace. `dropped`, which may be null, gets the number of events
 * that were dropped because a ring was full. Does nothing where nothing is to be stopped. Other threads may go on
 * emitting: their events are not recorded.
 *
 * Requires:
 * `dropped` is null or can be written.
 */
int stepscope_stop(uint64_t *dropped);

/**
 * Whether events are recorded now.
 */
bool stepscope_is_on(void);

/**
 * Names the calling thread in the trace, from its next recording on; call it before the thread's first event.
 *
 * Requires:
 * `name` is null, or ends with a zero byte.
 */
int stepscope_name_thread(const char *name);

/**
 * The id of a category and a name, both UTF-8; the same two always have the same id in a process. It takes a lock: look
 * it up once, as `STEPSCOPE_SITE` does. Returns 0 where the name cannot be used, or the process has 1,048,576 already;
 * events with this id are recorded as "(further sites)".
 *
 * Requires:
 * `category` and `name` are null, or end with a zero byte.
 */
stepscope_site_t stepscope_site(const char *category, const char *name);

/**
 * Begins a slice of the calling thread, which `stepscope_close` ends on the same thread. Returns 0, which may be passed
 * to `stepscope_close`, while nothing is recorded.
 */
stepscope_slice_t stepscope_open(stepscope_site_t site);

/**
 * Ends a slice that this thread began; slices inside it that are still open end with it.
 */
int stepscope_close(stepscope_slice_t slice);

/**
 * As `stepscope_close`, with `n_args` arguments, which the slice's details show. Where an argument cannot be used the
 * slice ends without them.
 *
 * Requires:
 * `args` has `n_args` elements, each with texts that end with a zero byte; it may be null where `n_args` is 0.
 */
int stepscope_close_with(stepscope_slice_t slice, const struct stepscope_arg *args, size_t n_args);

/**
 * Begins a step of the calling thread: `name` says what it does (`train`, `eval`), `step` is its number on the axis of
 * summaries, or that of the step in this process, from 0, where it is negative. A step that this thread began before
 * ends. "The next N steps" of `stepscope record --steps N` are counted by these calls.
 *
 * Requires:
 * `name` is null, or ends with a zero byte.
 */
int stepscope_begin_step(const char *name, int64_t step);

/**
 * Ends the step that this thread began; does nothing where there is none.
 */
void stepscope_end_step(void);

/**
 * Adds a track for the work of a device's stream, in its order of execution; tracks are sorted by `order`. Returns null
 * where nothing is recorded. `stepscope_track_close` frees it.
 *
 * Requires:
 * `device` and `name` are null, or end with a zero byte.
 */
struct stepscope_track *stepscope_track_of_stream(const char *device, uint64_t stream, const char *name, int32_t order);

/**
 * Adds a track for operations that begin and end on no thread, such as requests. As `stepscope_track_of_stream`.
 *
 * Requires:
 * `name` is null, or ends with a zero byte.
 */
struct stepscope_track *stepscope_track_of_operations(const char *name, int32_t order);

/**
 * The current time in ticks, for events of tracks. What a tick is differs between machines.
 */
uint64_t stepscope_now(void);

/**
 * Writes a slice from `begin` to `end`, ticks of `stepscope_now`, which may be in the past; `depth` slices of the track
 * are around it. An end before the begin counts as the begin. Events after the end of the recording are lost.
 *
 * Requires:
 * `track` is null or open; `args` as for `stepscope_close_with`.
 */
int stepscope_track_slice(const struct stepscope_track *track,
                          stepscope_site_t site,
                          uint32_t depth,
                          uint64_t begin,
                          uint64_t end,
                          const struct stepscope_arg *args,
                          size_t n_args);

/**
 * Writes an instant at `at`, in ticks.
 *
 * Requires:
 * `track` is null or open.
 */
int stepscope_track_instant(const struct stepscope_track *track, stepscope_site_t site, uint64_t at);

/**
 * Writes the begin of an arrow at `at`, in ticks: as `stepscope_flow_out`.
 *
 * Requires:
 * `track` is null or open.
 */
int stepscope_track_flow_out(const struct stepscope_track *track, stepscope_site_t site, uint64_t at, uint32_t id);

/**
 * Writes the end of an arrow at `at`, in ticks: as `stepscope_flow_in`.
 *
 * Requires:
 * `track` is null or open.
 */
int stepscope_track_flow_in(const struct stepscope_track *track, stepscope_site_t site, uint64_t at, uint32_t id);

/**
 * Frees a track, which nobody may use any more; its events stay. Null is allowed.
 *
 * Requires:
 * `track` is null, or open and not used by another thread.
 */
void stepscope_track_close(struct stepscope_track *track);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* STEPSCOPE_H */

/* Helpers over the functions above. */

/* The category of the macros' events: define it before this header for another. */
#ifndef STEPSCOPE_CATEGORY
#define STEPSCOPE_CATEGORY "c"
#endif

/* A whole number as an argument of `stepscope_close_with`. */
static inline stepscope_arg stepscope_integer(const char *name, int64_t value) {
    stepscope_arg arg = {name, STEPSCOPE_INTEGER, value, 0.0, 0};
    return arg;
}

/* A number as an argument. */
static inline stepscope_arg stepscope_number(const char *name, double value) {
    stepscope_arg arg = {name, STEPSCOPE_NUMBER, 0, value, 0};
    return arg;
}

/* A text as an argument; it must exist until the call. */
static inline stepscope_arg stepscope_text(const char *name, const char *value) {
    stepscope_arg arg = {name, STEPSCOPE_TEXT, 0, 0.0, value};
    return arg;
}

#if defined(__GNUC__)

/* The id of a category and a name, looked up once for each place in the program; any thread may be there. */
#define STEPSCOPE_SITE(category, name) \
    __extension__({ \
        static stepscope_site_t stepscope_known_ = 0; \
        stepscope_site_t stepscope_id_ = __atomic_load_n(&stepscope_known_, __ATOMIC_RELAXED); \
        if (stepscope_id_ == 0) { \
            stepscope_id_ = stepscope_site(category, name); \
            __atomic_store_n(&stepscope_known_, stepscope_id_, __ATOMIC_RELAXED); \
        } \
        stepscope_id_; \
    })

#define STEPSCOPE_JOIN_(a, b) a##b
#define STEPSCOPE_NAME_(a, b) STEPSCOPE_JOIN_(a, b)

static inline void stepscope_close_at_(const stepscope_slice_t *slice) {
    (void)stepscope_close(*slice);
}

/* A slice from here to the end of the block, however it is left (but by longjmp). */
#define STEPSCOPE_SLICE(name) \
    __attribute__((cleanup(stepscope_close_at_), unused)) const stepscope_slice_t STEPSCOPE_NAME_( \
        stepscope_slice_, __LINE__) = stepscope_open(STEPSCOPE_SITE(STEPSCOPE_CATEGORY, name))

/* Something happened now. */
#define STEPSCOPE_INSTANT(name) stepscope_instant(STEPSCOPE_SITE(STEPSCOPE_CATEGORY, name))

/* A counter's value, which holds from now on. */
#define STEPSCOPE_COUNTER(name, value) stepscope_counter(STEPSCOPE_SITE(STEPSCOPE_CATEGORY, name), value)

#endif /* __GNUC__ */

#ifdef __cplusplus
namespace stepscope {

/* A slice of the calling thread from its construction to its end, exceptions included. */
class Slice {
public:
    explicit Slice(stepscope_site_t site) noexcept : slice_(stepscope_open(site)) {}
    ~Slice() { (void)stepscope_close(slice_); }
    Slice(const Slice &) = delete;
    Slice &operator=(const Slice &) = delete;

    /* Ends the slice now, with arguments. */
    template <size_t N> void close(const stepscope_arg (&args)[N]) noexcept {
        (void)stepscope_close_with(slice_, args, N);
        slice_ = 0;
    }

private:
    stepscope_slice_t slice_;
};

} // namespace stepscope
#endif /* __cplusplus */
