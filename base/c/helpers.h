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
