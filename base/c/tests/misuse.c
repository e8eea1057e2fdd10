/* What a program may do wrong, and forks: misuse FOLDER. Each line that is printed is a check that failed. */

#include "stepscope.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int failed = 0;

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            failed = 1; \
            printf("line %d: %s (%s)\n", __LINE__, #condition, stepscope_last_error()); \
        } \
    } while (0)

/* The last error has this in it. */
static int says(const char *part) {
    return strstr(stepscope_last_error(), part) != NULL;
}

static void before_recording(void) {
    CHECK(strcmp(stepscope_last_error(), "") == 0);
    CHECK(!stepscope_is_on());
    CHECK(stepscope_open(STEPSCOPE_SITE("c", "before")) == 0);
    CHECK(stepscope_close(0) == STEPSCOPE_OK);
    CHECK(stepscope_stop(NULL) == STEPSCOPE_OK);
    CHECK(stepscope_start_from_env() == 0);
    CHECK(stepscope_start_after_fork() == 0);
    CHECK(stepscope_start(NULL) == STEPSCOPE_ERROR && says("the folder is a null pointer"));
    CHECK(stepscope_start("/dev/null/trace") == STEPSCOPE_ERROR && says("/dev/null/trace"));
    CHECK(stepscope_track_of_operations("requests", 0) == NULL && says("nothing is recorded"));
    stepscope_end_step();
}

static void bad_arguments(void) {
    CHECK(stepscope_site(NULL, "name") == 0 && says("the category is a null pointer"));
    CHECK(stepscope_site("c", "caf\xe9") == 0 && says("not UTF-8: caf"));
    CHECK(stepscope_site("c", "same") == stepscope_site("c", "same"));
    CHECK(stepscope_name_thread(NULL) == STEPSCOPE_ERROR);
    CHECK(stepscope_log(0, NULL) == STEPSCOPE_ERROR);
    CHECK(stepscope_begin_step(NULL, 0) == STEPSCOPE_ERROR);
    CHECK(stepscope_track_slice(NULL, 0, 0, 0, 0, NULL, 0) == STEPSCOPE_ERROR && says("the track is a null pointer"));
    CHECK(stepscope_track_flow_in(NULL, 0, 0, 0) == STEPSCOPE_ERROR);
    stepscope_track_close(NULL);

    stepscope_arg unnamed = stepscope_integer(NULL, 1);
    stepscope_slice_t slice = stepscope_open(STEPSCOPE_SITE("c", "bad arguments"));
    CHECK(stepscope_close_with(slice, &unnamed, 1) == STEPSCOPE_ERROR && says("name is a null pointer"));
    CHECK(stepscope_close(slice) == STEPSCOPE_ERROR);
    stepscope_arg strange = stepscope_integer("n", 1);
    strange.kind = 17;
    slice = stepscope_open(STEPSCOPE_SITE("c", "bad arguments"));
    CHECK(stepscope_close_with(slice, &strange, 1) == STEPSCOPE_ERROR && says("kind 17"));
    slice = stepscope_open(STEPSCOPE_SITE("c", "bad arguments"));
    CHECK(stepscope_close_with(slice, NULL, 1) == STEPSCOPE_ERROR && says("the arguments are a null pointer"));

    /* What does not fit is left out, and the rest is whole. */
    char longest[2000];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    stepscope_arg args[] = {stepscope_text("long", longest), stepscope_number("infinite", 1e308 * 10)};
    slice = stepscope_open(STEPSCOPE_SITE("c", "long argument"));
    CHECK(stepscope_close_with(slice, args, 2) == STEPSCOPE_OK);
}

static void *close_it(void *slice) {
    CHECK(stepscope_close(*(stepscope_slice_t *)slice) == STEPSCOPE_ERROR && says("not open on the calling thread"));
    return NULL;
}

static void wrong_order(void) {
    stepscope_slice_t outer = stepscope_open(STEPSCOPE_SITE("c", "outer"));
    stepscope_slice_t forgotten = stepscope_open(STEPSCOPE_SITE("c", "forgotten"));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, close_it, &outer) == 0);
    pthread_join(thread, NULL);
    CHECK(stepscope_close(outer) == STEPSCOPE_OK);
    CHECK(stepscope_close(outer) == STEPSCOPE_ERROR && says("not open"));
    CHECK(stepscope_close(forgotten) == STEPSCOPE_ERROR);
    CHECK(stepscope_close(12345) == STEPSCOPE_ERROR);

    stepscope_slice_t too_many[STEPSCOPE_MAX_OPEN];
    for (int i = 0; i < STEPSCOPE_MAX_OPEN; i++) {
        too_many[i] = stepscope_open(STEPSCOPE_SITE("c", "deep"));
    }
    CHECK(stepscope_open(STEPSCOPE_SITE("c", "too deep")) == 0 && says("65536 slices are open"));
    CHECK(stepscope_close(too_many[0]) == STEPSCOPE_OK);
    CHECK(stepscope_close(too_many[1]) == STEPSCOPE_ERROR);
}

/* The child records into the same folder; the slice and the track that it inherits are its parent's. */
static void in_child(stepscope_slice_t inherited, stepscope_track *track) {
    CHECK(!stepscope_is_on());
    CHECK(stepscope_close(inherited) == STEPSCOPE_OK);
    CHECK(stepscope_track_instant(track, 0, stepscope_now()) == STEPSCOPE_ERROR && says("forked"));
    CHECK(stepscope_start_after_fork() == 1);
    CHECK(stepscope_is_on());
    {
        STEPSCOPE_SLICE("child");
    }
    CHECK(stepscope_stop(NULL) == STEPSCOPE_OK);
    fflush(stdout);
    _exit(failed);
}

static void forks(void) {
    stepscope_slice_t slice = stepscope_open(STEPSCOPE_SITE("c", "around the fork"));
    stepscope_track *track = stepscope_track_of_operations("requests", 1);
    CHECK(track != NULL);
    pid_t child = fork();
    if (child == 0) {
        in_child(slice, track);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(stepscope_track_instant(track, STEPSCOPE_SITE("c", "request"), stepscope_now()) == STEPSCOPE_OK);
    stepscope_track_close(track);
    CHECK(stepscope_close(slice) == STEPSCOPE_OK);
}

int main(int argc, char **argv) {
    before_recording();
    CHECK(argc == 2 && stepscope_start(argv[1]) == STEPSCOPE_OK);
    CHECK(stepscope_is_on());
    CHECK(stepscope_start("elsewhere") == STEPSCOPE_ERROR && says("already records into"));
    CHECK(stepscope_start_from_env() == 0);
    bad_arguments();
    wrong_order();
    forks();
    CHECK(stepscope_stop(NULL) == STEPSCOPE_OK);
    CHECK(!stepscope_is_on());
    return failed;
}
