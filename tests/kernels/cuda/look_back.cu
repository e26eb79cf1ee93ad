// Single-pass prefix sum: each block publishes its inclusive prefix and takes its predecessor's, found by looking at
// the predecessor's state word. Blocks take their place in the chain in the order in which they start.

constexpr unsigned READY = 1;

__device__ unsigned take_place(unsigned *places)
{
    __shared__ unsigned place;
    if (threadIdx.x == 0)
        place = atomicAdd(places, 1);
    __syncthreads();
    return place;
}

__device__ unsigned block_inclusive_scan(unsigned value, unsigned *scratch)
{
    scratch[threadIdx.x] = value;
    __syncthreads();
    for (unsigned step = 1; step < blockDim.x; step *= 2) {
        unsigned other = threadIdx.x >= step ? scratch[threadIdx.x - step] : 0;
        __syncthreads();
        scratch[threadIdx.x] += other;
        __syncthreads();
    }
    return scratch[threadIdx.x];
}

// State and prefix are two words, and no fence keeps them in order.
extern "C" __global__ void scan_racy(const unsigned *in, unsigned *out, unsigned *places, volatile unsigned *states, unsigned *prefixes)
{
    __shared__ unsigned scratch[32];
    __shared__ unsigned before;
    unsigned place = take_place(places);
    unsigned i = place * blockDim.x + threadIdx.x;
    unsigned inclusive = block_inclusive_scan(in[i], scratch);
    if (threadIdx.x == blockDim.x - 1) {
        before = 0;
        if (place > 0) {
            while (states[place - 1] != READY) {
            }
            before = prefixes[place - 1];
        }
        prefixes[place] = before + inclusive;
        states[place] = READY;
    }
    __syncthreads();
    out[i] = before + inclusive;
}

extern "C" __global__ void scan_fixed(const unsigned *in, unsigned *out, unsigned *places, volatile unsigned *states, unsigned *prefixes)
{
    __shared__ unsigned scratch[32];
    __shared__ unsigned before;
    unsigned place = take_place(places);
    unsigned i = place * blockDim.x + threadIdx.x;
    unsigned inclusive = block_inclusive_scan(in[i], scratch);
    if (threadIdx.x == blockDim.x - 1) {
        before = 0;
        if (place > 0) {
            while (states[place - 1] != READY) {
            }
            __threadfence();
            before = prefixes[place - 1];
        }
        prefixes[place] = before + inclusive;
        __threadfence();
        states[place] = READY;
    }
    __syncthreads();
    out[i] = before + inclusive;
}
