/* A program that CUDA's driver would load the library into, and a libcupti that sees its calls: for the tests of machines without
 * CUDA. Built as libcupti.so with -DCUPTI, as the program without. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As the driver does it. */
static void *injected(void) { return dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW); }

#ifdef CUPTI
#include <sys/syscall.h>
typedef void (*requested_t)(uint8_t **, size_t *, size_t *);
typedef void (*completed_t)(void *, uint32_t, uint8_t *, size_t, size_t);
typedef uint64_t (*clock_fn)(void);

/* CUpti_ActivityAPI. */
struct api {
  uint32_t kind, cbid;
  uint64_t start, end;
  uint32_t process, thread, correlation, returned;
};

static requested_t requested;
static completed_t completed;
static clock_fn now;
static int is_on[128];
static uint8_t *buffer;
static size_t size, used;
static volatile int n_asked;
/* The buffer is the calls' and, now and then, the reader's. */
static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

uint32_t cuptiGetVersion(uint32_t *version) { return *version = 24, 0; }
uint32_t cuptiActivityRegisterCallbacks(requested_t r, completed_t c) { return requested = r, completed = c, 0; }
uint32_t cuptiActivityRegisterTimestampCallback(clock_fn c) { return now = c, 0; }
uint32_t cuptiSetThreadIdType(uint32_t type) { return type != 1; }
uint32_t cuptiActivityEnable(uint32_t kind) {
  /* What is switched on may initialise CUDA. */
  int (*initialise)(void) = (int (*)(void))dlsym(injected(), "InitializeInjection");
  return is_on[kind % 128] = 1, !initialise();
}
uint32_t cuptiActivityDisable(uint32_t kind) { return is_on[kind % 128] = 0, 0; }
uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *n) { return *n = 0, 0; }
uint32_t cuptiGetResultString(uint32_t result, const char **text) { return *text = "stand-in", 0; }
uint32_t cuptiGetCallbackName(uint32_t domain, uint32_t id, const char **name) {
  return *name = domain == 2 && id == 211 ? "cudaLaunchKernel_v7000" : "other", 0;
}
uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record) {
  uint8_t *next = *record ? *record + sizeof(struct api) : buffer;
  if (next + sizeof(struct api) > buffer + valid) return 12;
  return *record = next, 0;
}
/* What was recorded stays recorded when its kind is switched off. */
uint32_t cuptiActivityFlushAll(uint32_t flag) {
  pthread_mutex_lock(&held);
  uint8_t *full = buffer;
  size_t valid = used;
  buffer = 0, used = 0;
  pthread_mutex_unlock(&held);
  if (full) completed(0, 0, full, size, valid);
  return __atomic_add_fetch(&n_asked, 1, __ATOMIC_SEQ_CST), 0;
}
int InitializeInjectionNvtx2(void *get_export_table) { return get_export_table != 0; }

/* A call of CUDA, and how often what was recorded was asked for before. */
int stand_in_call(void) {
  if (!is_on[5] || !requested) return 0;
  size_t records = 0;
  pthread_mutex_lock(&held);
  if (!buffer) requested(&buffer, &size, &records);
  if (buffer) {
    uint64_t end = now();
    struct api call = {5, 211, end - 50000, end, getpid(), syscall(SYS_gettid), 7, 0};
    memcpy(buffer + used, &call, sizeof call);
    used += sizeof call;
  }
  int is_taken = buffer != 0;
  pthread_mutex_unlock(&held);
  return is_taken ? __atomic_load_n(&n_asked, __ATOMIC_SEQ_CST) : 0;
}
int stand_in_asked(void) { return __atomic_load_n(&n_asked, __ATOMIC_SEQ_CST); }
#else
#include <sys/wait.h>

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "return";
  void *library = injected();
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
  int (*initialise)(void) = (int (*)(void))dlsym(library, "InitializeInjection");
  int (*nvtx)(const void *) = (int (*)(const void *))dlsym(library, "InitializeInjectionNvtx2");
  if (!initialise || !nvtx) return 3;
  int ranges = strcmp(how, "nvtx first") == 0 ? nvtx(argv) : -1;
  int first = initialise(), second = initialise();
  if (ranges < 0) ranges = nvtx(argv);
  printf("%d %d %d\n", first, second, ranges);
  fflush(stdout);

  void *cupti = dlopen("libcupti.so", RTLD_NOW | RTLD_NOLOAD);
  int (*call)(void) = cupti ? (int (*)(void))dlsym(cupti, "stand_in_call") : 0;
  int (*asked)(void) = cupti ? (int (*)(void))dlsym(cupti, "stand_in_asked") : 0;
  int before = call ? call() : 0;
  if (strcmp(how, "_exit") == 0) {
    /* Asked twice: what came with the first time has been read. */
    for (int i = 0; i < 2000 && asked && asked() < before + 2; i++) usleep(10000);
    _exit(0);
  }
  if (strcmp(how, "exec") == 0) return execl(argv[0], argv[0], "return", NULL), 4;
  if (strcmp(how, "fork") == 0) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) exit(initialise() && initialise() && nvtx(argv) == 0 ? 0 : 5);
    for (int i = 0; i < 2000 && waitpid(child, &status, WNOHANG) == 0; i++) usleep(10000);
    return status == 0 ? 0 : 6;
  }
  return 0;
}
#endif
