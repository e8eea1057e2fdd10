/*
 * A program that records itself: hello FOLDER.
 *
 *     cc hello.c -Ibase/c/include -Ltarget/release -lstepscope -o hello
 *     LD_LIBRARY_PATH=target/release ./hello runs/hello
 *     stepscope view runs/hello
 */

#define STEPSCOPE_CATEGORY "hello"
#include "stepscope.h"

#include <pthread.h>
#include <stdio.h>

/* Work for another thread, and the arrow that leads to it. */
struct job {
    int batch;
    uint32_t flow;
};

static void load(int batch) {
    STEPSCOPE_SLICE("load"); /* until the function returns */
    {
        STEPSCOPE_SLICE("read");
        STEPSCOPE_COUNTER("rows", 10.0 * batch);
    }
    STEPSCOPE_INSTANT("loaded");
}

static void *work(void *argument) {
    const struct job *job = argument;
    stepscope_name_thread("worker");
    stepscope_slice_t slice = stepscope_open(STEPSCOPE_SITE("hello", "work"));
    stepscope_flow_in(STEPSCOPE_SITE("hello", "job"), job->flow);
    stepscope_arg args[] = {stepscope_integer("batch", job->batch), stepscope_number("share", 0.5),
                            stepscope_text("by", "a \"worker\"")};
    stepscope_close_with(slice, args, 3);
    return NULL;
}

/* What a device would have done, as its library reports it afterwards. */
static int report_device(uint64_t begin, uint64_t end) {
    stepscope_track *track = stepscope_track_of_stream("GPU 0", 7, "stream 7", 0);
    if (track == NULL) {
        return STEPSCOPE_ERROR;
    }
    stepscope_arg args[] = {stepscope_integer("bytes", 4096)};
    int result = stepscope_track_slice(track, STEPSCOPE_SITE("copy", "to the device"), 0, begin, end, args, 1);
    stepscope_track_close(track);
    return result;
}

int main(int argc, char **argv) {
    uint64_t dropped = 0;
    if (argc != 2 || stepscope_start(argv[1]) != STEPSCOPE_OK) {
        fprintf(stderr, "hello: %s\n", argc == 2 ? stepscope_last_error() : "usage: hello FOLDER");
        return 1;
    }
    stepscope_name_thread("main");
    uint64_t begin = stepscope_now();
    for (int batch = 0; batch < 3; batch++) {
        stepscope_begin_step("train", 100 + batch);
        load(batch);
        struct job job = {batch, stepscope_next_flow_id()};
        stepscope_flow_out(STEPSCOPE_SITE("hello", "job"), job.flow);
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, &job) == 0) {
            pthread_join(thread, NULL);
        }
        stepscope_end_step();
    }
    stepscope_log(STEPSCOPE_SITE("hello", "message"), "all three batches are done");
    if (report_device(begin, stepscope_now()) != STEPSCOPE_OK || stepscope_stop(&dropped) != STEPSCOPE_OK) {
        fprintf(stderr, "hello: %s\n", stepscope_last_error());
        return 1;
    }
    printf("%llu events were dropped\n", (unsigned long long)dropped);
    return 0;
}
