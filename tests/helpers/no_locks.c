/* A file system without locks: flock fails with ERRNO, as on Lustre and NFS by their mount options. By LD_PRELOAD. */
#include <errno.h>
#include <stdlib.h>

int flock(int descriptor, int operation) {
    (void)descriptor;
    (void)operation;
    errno = atoi(getenv("FLOCK_ERRNO"));
    return -1;
}
