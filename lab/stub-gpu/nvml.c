// SIMULATED GPU: the lab's stand-in for libnvidia-ml.so.1. It lists what the stand-in of the kernel module lists
// (/proc/driver/nvidia/gpus) and counts what /run/muster-standin/faults contains (see the script `fault`);
// both are read at every call. Names, numbers and layouts: nvml.h as NVIDIA publishes it with go-nvml.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define MOST_GPUS 16
#define LINKS 18

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

static const char *const kGpus = "/proc/driver/nvidia/gpus", *const kFaults = "/run/muster-standin/faults";
static int started;
static char handles[MOST_GPUS];  // a handle is the address of one of these

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

// The PCI addresses, in order; how many.
static unsigned list(char (*addresses)[16]) {
  unsigned count = 0;
  DIR *folder = opendir(kGpus);
  if (!folder) return 0;
  for (struct dirent *entry; (entry = readdir(folder)) && count < MOST_GPUS;)
    if (entry->d_name[0] != '.' && strlen(entry->d_name) < 16) strcpy(addresses[count++], entry->d_name);
  closedir(folder);
  qsort(addresses, count, 16, by_name);
  return count;
}

// The number after "WORD GPU" in the faults; 0 when it is not there, 1 when no number follows.
static unsigned long long fault(const char *word, long gpu) {
  FILE *in = fopen(kFaults, "r");
  if (!in) return 0;
  unsigned long long found = 0, value;
  char line[128], said[32];
  long which;
  while (fgets(line, sizeof line, in)) {
    value = 1;
    if (sscanf(line, "%31s %ld %llu", said, &which, &value) >= 2 && which == gpu && !strcmp(said, word)) found = value;
  }
  fclose(in);
  return found;
}

static long number_of(const void *device) { return (long)((const char *)device - handles); }

static int answer(const void *device) {
  char addresses[MOST_GPUS][16];
  if (!started) return UNINITIALIZED;
  const long gpu = number_of(device);
  if (gpu < 0 || gpu >= (long)list(addresses)) return INVALID_ARGUMENT;
  return fault("lost", gpu) ? GPU_IS_LOST : SUCCESS;
}

// The value after `key` in the GPU's file.
static int tell(const void *device, const char *key, char *text, unsigned length) {
  char addresses[MOST_GPUS][16], path[128], line[160];
  const int code = answer(device);
  if (code != SUCCESS) return code;
  list(addresses);
  snprintf(path, sizeof path, "%s/%s/information", kGpus, addresses[number_of(device)]);
  FILE *in = fopen(path, "r");
  if (!in) return GPU_IS_LOST;
  int found = NOT_SUPPORTED;
  while (found != SUCCESS && fgets(line, sizeof line, in)) {
    if (strncmp(line, key, strlen(key)) != 0) continue;
    const char *value = line + strlen(key);
    value += strspn(value, " \t");
    if (snprintf(text, length, "%.*s", (int)strcspn(value, "\n"), value) < (int)length) found = SUCCESS;
  }
  fclose(in);
  return found;
}

API int nvmlInit_v2(void) {
  char addresses[MOST_GPUS][16];
  started = list(addresses) > 0;
  return started ? SUCCESS : DRIVER_NOT_LOADED;
}
API int nvmlInit(void) { return nvmlInit_v2(); }
API int nvmlShutdown(void) {
  started = 0;
  return SUCCESS;
}
API const char *nvmlErrorString(int code) {
  return code == SUCCESS             ? "Success"
         : code == NOT_SUPPORTED     ? "Not Supported"
         : code == DRIVER_NOT_LOADED ? "Driver Not Loaded"
         : code == GPU_IS_LOST       ? "GPU is lost"
                                     : "Unknown Error";
}
API int nvmlSystemGetDriverVersion(char *text, unsigned length) {
  return snprintf(text, length, "%s (SIMULATED GPU)", STANDIN_VERSION) < (int)length ? SUCCESS : INVALID_ARGUMENT;
}
API int nvmlDeviceGetCount_v2(unsigned *count) {
  char addresses[MOST_GPUS][16];
  *count = list(addresses);
  return started ? SUCCESS : UNINITIALIZED;
}
API int nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }
API int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
  if (index >= MOST_GPUS) return INVALID_ARGUMENT;
  *device = &handles[index];
  return answer(*device);
}
API int nvmlDeviceGetHandleByIndex(unsigned index, void **device) { return nvmlDeviceGetHandleByIndex_v2(index, device); }
API int nvmlDeviceGetUUID(void *device, char *text, unsigned length) { return tell(device, "GPU UUID:", text, length); }
API int nvmlDeviceGetName(void *device, char *text, unsigned length) { return tell(device, "Model:", text, length); }
// Uncorrected (1) and corrected (0) errors, since the start or in all.
API int nvmlDeviceGetTotalEccErrors(void *device, int kind, int since, unsigned long long *count) {
  (void)since;
  *count = fault(kind ? "ecc" : "ecc-corrected", number_of(device));
  return answer(device);
}
API int nvmlDeviceGetRemappedRows(void *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
                                  unsigned *failed) {
  *corrected = *failed = 0;
  *uncorrected = *pending = fault("remap", number_of(device)) > 0;
  return answer(device);
}
// As a GPU on NVSwitches has them: 18, all up.
API int nvmlDeviceGetNvLinkState(void *device, unsigned link, int *active) {
  *active = link < LINKS;
  return link < LINKS ? answer(device) : INVALID_ARGUMENT;
}
API int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned link, int counter, unsigned long long *errors) {
  (void)counter;
  *errors = 0;
  return link < LINKS ? answer(device) : INVALID_ARGUMENT;
}
API int nvmlDeviceGetCurrentClocksEventReasons(void *device, unsigned long long *reasons) {
  *reasons = 0;
  return answer(device);
}
