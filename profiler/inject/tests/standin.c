/* A program that CUDA's driver would load the library into, and a libcupti that has seen one call: for the tests of machines
 * without CUDA. Built as libcupti.so with -DCUPTI, as the program without. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef CUPTI
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

uint32_t cuptiGetVersion(uint32_t *version) { return *version = 24, 0; }
uint32_t cuptiActivityRegisterCallbacks(requested_t r, completed_t c) { return requested = r, completed = c, 0; }
uint32_t cuptiActivityRegisterTimestampCallback(clock_fn c) { return now = c, 0; }
uint32_t cuptiSetThreadIdType(uint32_t type) { return type != 1; }
uint32_t cuptiActivityEnable(uint32_t kind) { return is_on[kind % 128] = 1, 0; }
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
/* The call happened before this one. */
uint32_t cuptiActivityFlushAll(uint32_t flag) {
  static int is_told;
  uint8_t *buffer = 0;
  size_t size = 0, records = 0;
  if (is_told || !is_on[5] || !requested) return 0;
  requested(&buffer, &size, &records);
  if (!buffer) return 0;
  uint64_t end = now();
  struct api call = {5, 211, end - 50000, end, 1, 1, 7, 0};
  memcpy(buffer, &call, sizeof call);
  is_told = 1;
  completed(0, 0, buffer, size, sizeof call);
  return 0;
}
int InitializeInjectionNvtx2(void *get_export_table) { return get_export_table != 0; }
#else
#include <dlfcn.h>
int main(int argc, char **argv) {
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
  int (*initialise)(void) = (int (*)(void))dlsym(library, "InitializeInjection");
  int (*nvtx)(const void *) = (int (*)(const void *))dlsym(library, "InitializeInjectionNvtx2");
  if (!initialise || !nvtx) return 3;
  int first = initialise(), second = initialise();
  printf("%d %d %d\n", first, second, nvtx(argv));
  return 0;
}
#endif
