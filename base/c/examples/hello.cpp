// A program in C++ that records itself: hello FOLDER. Build it as hello.c, with c++.

#include "stepscope.h"

#include <cstdio>
#include <stdexcept>
#include <thread>

static void parse(int line) {
    STEPSCOPE_SLICE("parse");
    if (line == 2) {
        throw std::runtime_error("a bad line"); // the slice ends here
    }
}

static void read(int n_lines) {
    stepscope::Slice slice(STEPSCOPE_SITE("c++", "read"));
    for (int line = 0; line < n_lines; line++) {
        try {
            parse(line);
        } catch (const std::runtime_error &error) {
            stepscope_log(STEPSCOPE_SITE("c++", "error"), error.what());
        }
    }
    slice.close({stepscope_integer("lines", n_lines)});
}

int main(int argc, char **argv) {
    if (argc != 2 || stepscope_start(argv[1]) != STEPSCOPE_OK) {
        std::fprintf(stderr, "hello: %s\n", argc == 2 ? stepscope_last_error() : "usage: hello FOLDER");
        return 1;
    }
    read(4);
    std::thread([] {
        stepscope_name_thread("second");
        read(2);
    }).join();
    return 0; // the end of the process completes the trace
}
