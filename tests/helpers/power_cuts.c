/* Tells a test, over a socket, what a process asks of the disk: each fsync, and each rename, after which the process
   waits until the test has looked at the folder. Loaded with LD_PRELOAD; SOCKET is its path. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void tell(const char *what, const char *from, const char *to) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = SOCKET};
    char line[9000], done;
    int size = snprintf(line, sizeof line, "%s\t%s\t%s\n", what, from, to);
    int test = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(test, (struct sockaddr *)&address, sizeof address) == 0 && write(test, line, size) == size)
        while (read(test, &done, 1) > 0);
    close(test);
}

static int synced(const char *name, int file) {
    int (*call)(int) = dlsym(RTLD_NEXT, name);
    int result = call(file);
    struct stat status;
    char inode[64], state[64];
    if (result == 0 && fstat(file, &status) == 0) {
        snprintf(inode, sizeof inode, "%lu", (unsigned long)status.st_ino);
        snprintf(state, sizeof state, "%ld %ld%09ld", (long)status.st_size, (long)status.st_mtim.tv_sec,
                 status.st_mtim.tv_nsec);
        tell("fsync", inode, state);
    }
    return result;
}

int fsync(int file) { return synced("fsync", file); }
int fdatasync(int file) { return synced("fdatasync", file); }

int rename(const char *from, const char *to) {
    int (*call)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
    int result = call(from, to);
    char *absolute = result == 0 ? realpath(to, NULL) : NULL;
    if (absolute) tell("rename", from, absolute);
    free(absolute);
    return result;
}
