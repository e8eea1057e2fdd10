// What the kernels' sources need to be a program of the host: the threads of a block run one after the other, and change
// places where they wait for each other.
#define HOST
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>
#include <utility>
#include <vector>
#define __global__
#define __device__
#define __shared__ static
struct Index { unsigned x, y, z; };
static Index threadIdx, blockIdx, blockDim, gridDim;
struct Fiber { ucontext_t context; std::vector<char> stack; bool done; };
static ucontext_t scheduler;
static Fiber *current;
static void __syncthreads() { swapcontext(&current->context, &scheduler); }
template <class V> V atomicAdd(V *at, V value) { V old = *at; *at = old + value; return old; }

template <class... A, size_t... I> void call_with(void (*f)(A...), void **a, std::index_sequence<I...>) { f(*(A *)a[I]...); }
template <class... A> void call(void (*f)(A...), void **a) { call_with(f, a, std::index_sequence_for<A...>{}); }

static void (*entry)(void **);
static void **entry_arguments;
static void begin() {
    entry(entry_arguments);
    current->done = true;
    swapcontext(&current->context, &scheduler);
}
static void run_block(void (*f)(void **), void **arguments, unsigned threads, bool waits) {
    if (!waits) {
        for (unsigned t = 0; t < threads; t++) { threadIdx = {t, 0, 0}; f(arguments); }
        return;
    }
    static std::vector<Fiber> fibers;
    fibers.resize(threads);
    entry = f;
    entry_arguments = arguments;
    for (Fiber &fiber : fibers) {
        fiber.stack.resize(64 << 10);
        fiber.done = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.data();
        fiber.context.uc_stack.ss_size = fiber.stack.size();
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, begin, 0);
    }
    for (bool runs = true; runs;) {
        runs = false;
        for (unsigned t = 0; t < threads; t++) {
            if (fibers[t].done) continue;
            threadIdx = {t, 0, 0};
            current = &fibers[t];
            swapcontext(&scheduler, &fibers[t].context);
            runs = true;
        }
    }
}
static void run(void (*f)(void **), void **arguments, const unsigned *grid, unsigned threads, bool waits) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {threads, 1, 1};
    for (unsigned z = 0; z < grid[2]; z++)
        for (unsigned y = 0; y < grid[1]; y++)
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                run_block(f, arguments, threads, waits);
            }
}
