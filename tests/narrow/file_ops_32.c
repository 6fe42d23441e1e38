/* Known operations on files by a program of 32 bits, without a C library: `file_ops_32 FOLDER` leaves the folder as it
   found it. Ends with 0 where each call was answered as it should be, else with the number of a line. */
#include <asm/unistd_32.h>

#define OPEN_CREATE 0100102 /* also for reading, and large */
#define HERE (-100)
#define REMOVE_FOLDER 0x200
#define SET_LOCK 13
#define WRITE_LOCK 1
#define NO_ENTRY (-2)
#define FAR 5 /* times 4 GiB */

int call(int number, ...);
__asm__(".globl _start\n_start:\n\tpushl 8(%esp)\n\tcall begin\n"
        "call:\n\tpush %ebp\n\tpush %edi\n\tpush %esi\n\tpush %ebx\n"
        "\tmov 20(%esp),%eax\n\tmov 24(%esp),%ebx\n\tmov 28(%esp),%ecx\n\tmov 32(%esp),%edx\n"
        "\tmov 36(%esp),%esi\n\tmov 40(%esp),%edi\n\tmov 44(%esp),%ebp\n\tint $0x80\n"
        "\tpop %ebx\n\tpop %esi\n\tpop %edi\n\tpop %ebp\n\tret\n");

struct request { /* struct iocb of linux/aio_abi.h */
    unsigned long long data;
    unsigned key, flags;
    unsigned short opcode;
    short priority;
    unsigned descriptor;
    unsigned long long buffer, bytes, offset, unused[2];
};
struct vector { /* struct iovec of 32 bits */
    void *base;
    unsigned bytes;
};
struct lock { /* struct flock64 of 32 bits */
    short type, whence;
    long long start, length;
    int process;
} __attribute__((packed));

static char piece[4096], told[512], path[4][256];
static struct request requests[2];
static struct lock lock;

static char *name(int at, const char *folder, const char *last) {
    char *to = path[at];
    while (*folder) *to++ = *folder++;
    while (*last) *to++ = *last++;
    *to = 0;
    return path[at];
}

#define WELL(wanted, ...)                                                            \
    do {                                                                             \
        if (call(__VA_ARGS__) != (wanted)) call(__NR_exit, __LINE__ % 255 + 1);      \
    } while (0)

void begin(const char *folder) {
    struct vector vectors[2] = {{piece, 600}, {piece, 400}};
    struct request *list[2] = {&requests[0], &requests[1]};
    char *file = name(0, folder, "/file"), *other = name(1, folder, "/other"), *below = name(2, folder, "/below");
    char *missing = name(3, folder, "/missing");
    long long from = 0;
    unsigned context = 0;
    int fd, copy, at, ends[2];

    fd = call(__NR_openat, HERE, file, OPEN_CREATE, 0600);
    copy = call(__NR_open, other, OPEN_CREATE, 0600);
    if (fd < 0 || copy < 0) call(__NR_exit, 1);
    for (at = 0; at < 70; at++) WELL(NO_ENTRY, __NR_open, missing, 0);

    for (at = 0; at < 10; at++) WELL(1000, __NR_write, fd, piece, 1000);
    WELL(1000, __NR_writev, fd, vectors, 2);
    WELL(1000, __NR_pwrite64, fd, piece, 1000, 0, FAR);
    for (at = 0; at < 20; at++) WELL(50, __NR_pread64, fd, piece, 50, at * 50, FAR);
    WELL(1000, __NR_preadv, fd, vectors, 2, 0, FAR);
    WELL(0, __NR__llseek, fd, 0, 0, told, 0);
    WELL(10, __NR_read, fd, piece, 10);
    WELL(5000, __NR_sendfile64, copy, fd, &from, 5000);
    WELL(0, __NR_pipe, ends);
    WELL(100, __NR_write, ends[1], piece, 100);
    WELL(100, __NR_splice, ends[0], 0, copy, 0, 100, 0);

    for (at = 0; at < 5; at++) WELL(0, __NR_stat64, file, told);
    for (at = 0; at < 4; at++) WELL(0, __NR_fstatat64, HERE, file, told, 0);
    for (at = 0; at < 3; at++) WELL(0, __NR_statx, HERE, file, 0, 0x7ff, told);
    WELL(0, __NR_fstat64, fd, told);
    WELL(NO_ENTRY, __NR_access, missing, 0);

    lock.type = WRITE_LOCK;
    lock.length = 10;
    for (at = 0; at < 4; at++) WELL(0, __NR_fcntl64, fd, SET_LOCK, &lock);
    for (at = 0; at < 2; at++) WELL(0, __NR_fsync, fd);
    WELL(0, __NR_ftruncate64, fd, 4096, 0);
    WELL(0, __NR_truncate64, file, 2048, 0);

    WELL(0, __NR_io_setup, 2, &context);
    for (at = 0; at < 2; at++) {
        requests[at].opcode = 1;
        requests[at].descriptor = copy;
        requests[at].buffer = (unsigned)piece;
        requests[at].bytes = 512;
    }
    WELL(2, __NR_io_submit, context, 2, list);
    WELL(0, __NR_io_destroy, context);

    WELL(0, __NR_symlink, "/proc/none", below);
    WELL(0, __NR_unlink, below);
    WELL(0, __NR_symlinkat, "/proc/none", HERE, below);
    WELL(0, __NR_unlink, below);
    WELL(0, __NR_mkdir, below, 0700);
    WELL(0, __NR_rename, other, missing);
    WELL(0, __NR_unlink, missing);
    WELL(0, __NR_unlinkat, HERE, below, REMOVE_FOLDER);
    WELL(0, __NR_close, copy);
    WELL(0, __NR_close, fd);
    WELL(0, __NR_unlink, file);
    call(__NR_exit, 0);
}
