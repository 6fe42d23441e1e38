// Preloaded into slurmd on a host that has v1 hierarchies beside v2, whose cgroup/v2 plugin ends with
// "Hybrid mode is not supported" otherwise: of /proc/*/cgroup a process sees the line of v2 alone.
// What is opened is a copy in memory; everything else goes to the C library untouched.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

typedef int (*open_call)(const char *, int, ...);
typedef FILE *(*fopen_call)(const char *, const char *);

static int is_cgroup_file(const char *path)
{
    return path && fnmatch("/proc/*/cgroup", path, 0) == 0;
}

static FILE *real_fopen(const char *path, const char *mode)
{
    fopen_call call = (fopen_call)dlsym(RTLD_NEXT, "fopen");
    return call(path, mode);
}

// A descriptor of the copy, or -1 with errno as the file's own opening left it.
static int open_copy(const char *path)
{
    FILE *file = real_fopen(path, "re");
    if (!file)
        return -1;
    int copy = memfd_create("cgroup", 0);
    char *line = NULL;
    size_t room = 0;
    while (copy >= 0 && getline(&line, &room, file) > 0)
        if (strncmp(line, "0::", 3) == 0)
            dprintf(copy, "%s", line);
    free(line);
    fclose(file);
    if (copy >= 0)
        lseek(copy, 0, SEEK_SET);
    return copy;
}

static FILE *open_stream(const char *name, const char *path, const char *mode)
{
    if (!is_cgroup_file(path)) {
        fopen_call call = (fopen_call)dlsym(RTLD_NEXT, name);
        return call(path, mode);
    }
    int copy = open_copy(path);
    return copy < 0 ? NULL : fdopen(copy, "r");
}

FILE *fopen(const char *path, const char *mode)
{
    return open_stream("fopen", path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return open_stream("fopen64", path, mode);
}

static int open_file(const char *name, const char *path, int flags, mode_t mode)
{
    if (is_cgroup_file(path))
        return open_copy(path);
    open_call call = (open_call)dlsym(RTLD_NEXT, name);
    return call(path, flags, mode);
}

static mode_t mode_of(int flags, va_list rest)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_file("open", path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return open_file("open64", path, flags, mode);
}
