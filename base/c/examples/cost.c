/* What a slice costs: cost FOLDER. Prints nanoseconds for each, the best of 20 rounds, while recording is off and on. */

#include "stepscope.h"

#include <stdio.h>
#include <time.h>

enum { ROUNDS = 20, SLICES = 100000 };

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static double best_ns(void) {
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_ns();
        for (int i = 0; i < SLICES; i++) {
            STEPSCOPE_SLICE("slice");
        }
        double each = (now_ns() - begin) / SLICES;
        best = each < best ? each : best;
        /* The collector empties the ring between two rounds. */
        struct timespec pause = {0, 100000000};
        nanosleep(&pause, NULL);
    }
    return best;
}

int main(int argc, char **argv) {
    double off = best_ns();
    uint64_t dropped = 0;
    if (argc != 2 || stepscope_start(argv[1]) != STEPSCOPE_OK) {
        fprintf(stderr, "cost: %s\n", argc == 2 ? stepscope_last_error() : "usage: cost FOLDER");
        return 1;
    }
    stepscope_name_thread("main");
    double on = best_ns();
    if (stepscope_stop(&dropped) != STEPSCOPE_OK) {
        return 1;
    }
    printf("off %.1f ns, on %.1f ns, %llu dropped\n", off, on, (unsigned long long)dropped);
    return 0;
}
