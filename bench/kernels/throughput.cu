// The memory patterns that the cost of detection depends on. None of them races.

// Every word read once and written once, neighbours by neighbouring threads.
extern "C" __global__ void copy(const unsigned* in, unsigned* out, unsigned long long n) {
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n;
         i += (unsigned long long)gridDim.x * blockDim.x) {
        out[i] = in[i];
    }
}

// The same in accesses of 16 bytes; n counts those.
extern "C" __global__ void copy4(const uint4* in, uint4* out, unsigned long long n) {
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n;
         i += (unsigned long long)gridDim.x * blockDim.x) {
        out[i] = in[i];
    }
}

// Every block reads the same table of table_len words (a power of two) again and again.
extern "C" __global__ void table(const unsigned* in, unsigned* out, unsigned long long n, unsigned long long table_len) {
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n;
         i += (unsigned long long)gridDim.x * blockDim.x) {
        out[i] = in[i & (table_len - 1)];
    }
}

// Reads words all over the input (n is a power of two).
extern "C" __global__ void gather(const unsigned* in, unsigned* out, unsigned long long n) {
    for (unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x; i < n;
         i += (unsigned long long)gridDim.x * blockDim.x) {
        unsigned h = (unsigned)i * 0x9e3779b1u;
        h ^= h >> 15;
        h *= 0x85ebca77u;
        h ^= h >> 13;
        out[i] = in[h & (n - 1)];
    }
}

// C = A B for n by n matrices, n a multiple of 16, through 16 by 16 tiles in shared memory.
extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned n) {
    __shared__ float tile_a[16][17];
    __shared__ float tile_b[16][17];
    const unsigned x = threadIdx.x;
    const unsigned y = threadIdx.y;
    const unsigned row = blockIdx.y * 16 + y;
    const unsigned column = blockIdx.x * 16 + x;
    float sum = 0;
    for (unsigned k = 0; k < n; k += 16) {
        tile_a[y][x] = a[(size_t)row * n + k + x];
        tile_b[y][x] = b[(size_t)(k + y) * n + column];
        __syncthreads();
        for (unsigned i = 0; i < 16; i++) {
            sum += tile_a[y][i] * tile_b[i][x];
        }
        __syncthreads();
    }
    c[(size_t)row * n + column] = sum;
}
