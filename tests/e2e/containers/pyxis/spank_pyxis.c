// Stand-in for pyxis, against Slurm's own header: `srun --container-image=FILE [--container-mounts=FROM:TO,...]` starts each task in the
// namespaces of a container that the stand-in for enroot has started, with the job's environment, and so with the hooks' PMIx.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

SPANK_PLUGIN(pyxis, 1)

enum { kImage = 1, kMounts, kMostMounts = 16 };

static char image[4096], mounts[4096];

static int take(int option, const char *value, int remote) {
  (void)remote;
  char *into = option == kImage ? image : mounts;
  if (!value || strlen(value) >= sizeof(image)) return ESPANK_BAD_ARG;
  strcpy(into, value);
  return ESPANK_SUCCESS;
}

static struct spank_option options[] = {
    {"container-image", "FILE", "stand-in for pyxis: a squashfs file, seen as the root of the task", 1, kImage, take},
    {"container-mounts", "FROM:TO[,...]", "stand-in for pyxis: what of the node the container has", 1, kMounts, take},
    SPANK_OPTIONS_TABLE_END};

int slurm_spank_init(spank_t sp, int count, char **arguments) {
  (void)count, (void)arguments;
  for (int i = 0; options[i].name; i++)
    if (spank_option_register(sp, &options[i]) != ESPANK_SUCCESS) return -1;
  return 0;
}

// The container's first process: it says that it is there and ends when its input does.
static void start(char **environment) {
  char *words[2 * kMostMounts + 8] = {"enroot", "start"};
  int n = 2;
  for (char *rest = mounts, *one; n < 2 * kMostMounts && (one = strsep(&rest, ",")) != NULL;)
    if (*one) words[n++] = "--mount", words[n++] = one;
  words[n++] = image;
  words[n++] = "/bin/sh", words[n++] = "-c", words[n++] = "echo started; read end";
  execve("/usr/bin/enroot", words, environment);
  perror("/usr/bin/enroot");
  _exit(127);
}

static int open_of(pid_t pid, const char *name) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
  return open(path, O_RDONLY | O_CLOEXEC);
}

static int enter(pid_t pid) {
  const int user = open_of(pid, "ns/user"), mount = open_of(pid, "ns/mnt"), root = open_of(pid, "root");
  if (user < 0 || mount < 0 || root < 0) return -1;
  if (setns(user, CLONE_NEWUSER) || setns(mount, CLONE_NEWNS) || fchdir(root) || chroot(".") || chdir("/")) return -1;
  close(user), close(mount), close(root);
  return 0;
}

int slurm_spank_task_init(spank_t sp, int count, char **arguments) {
  (void)count, (void)arguments;
  char **environment = NULL, said[16] = "";
  int in[2], out[2];
  if (!*image) return 0;
  if (spank_get_item(sp, S_JOB_ENV, &environment) != ESPANK_SUCCESS || pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) return -1;
  const pid_t pid = fork();
  if (pid < 0) return -1;
  if (pid == 0) {
    dup2(in[0], 0), dup2(out[1], 1);
    start(environment);
  }
  close(in[0]), close(out[1]);
  FILE *line = fdopen(out[0], "re");
  const int there = line && fgets(said, sizeof(said), line) && strcmp(said, "started\n") == 0;
  const int entered = there && enter(pid) == 0;
  if (!entered) slurm_error("pyxis (stand-in): %s", there ? "the container cannot be entered" : "the container did not start");
  close(in[1]);
  if (line) fclose(line);
  waitpid(pid, NULL, 0);
  return entered ? 0 : -1;
}
