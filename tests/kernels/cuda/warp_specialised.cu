// A product of matrices by specialised warps: one thread of the first warpgroup copies chunks into a ring in shared memory, two
// warpgroups multiply them, with registers that the first one has given up (`setmaxnreg`). Twice: the second product's left side is
// what another block has made in the first one and announces by a flag; in the racy kernel without release.
#include <cstdint>

constexpr int M = 128, N = 256, K = 1, STAGES = 3;

struct Stage { uint32_t left[K][M], right[K][N]; };

__device__ static uint32_t at(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ static void init(uint64_t* bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(bar)), "r"(count) : "memory");
}
__device__ static void arrive(uint64_t* bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(bar)) : "memory");
}
__device__ static void expect(uint64_t* bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(at(bar)), "r"(bytes) : "memory");
}
__device__ static void wait(uint64_t* bar, uint32_t parity) {
    asm volatile("{\n\t.reg .pred done;\nagain:\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
                 "@done bra.uni over;\n\tbra.uni again;\nover:\n\t}" :: "r"(at(bar)), "r"(parity) : "memory");
}
__device__ static void copy(void* to, const uint32_t* from, uint32_t bytes, uint64_t* bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 :: "r"(at(to)), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at(bar)) : "memory");
}
__device__ static void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }
__device__ static uint32_t acquire(const uint32_t* p) {
    uint32_t v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
    return v;
}
__device__ static void release(uint32_t* p) {
    asm volatile("st.release.gpu.global.u32 [%0], 1;" :: "l"(__cvta_generic_to_global(p)) : "memory");
}
__device__ static void relaxed(uint32_t* p) {
    asm volatile("st.relaxed.gpu.global.u32 [%0], 1;" :: "l"(__cvta_generic_to_global(p)) : "memory");
}

// a: per block `chunks` of K x M; b: `chunks` of K x N; c: per block N x M, of which `chunks` of K x M are used (256 at most); sum: of each
// block's second product, every element with a weight.
template <bool RACY>
__device__ static void products(const uint32_t* a, const uint32_t* b, uint32_t* c, uint32_t* ready, uint32_t* sum,
                                uint32_t chunks) {
    __shared__ alignas(128) Stage ring[STAGES];
    __shared__ uint64_t full[STAGES], empty[STAGES];
    const uint32_t other = blockIdx.x == 0 ? 0 : blockIdx.x - 1;
    if (threadIdx.x == 0)
        for (int i = 0; i < STAGES; i++) {
            init(&full[i], 1);
            init(&empty[i], 256);
        }
    __syncthreads();
    uint32_t stage = 0, parity = 0;
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x != 0)
            return;
        for (int part = 0; part < 2; part++) {
            const uint32_t* left = a + size_t(blockIdx.x) * chunks * K * M;
            if (part == 1) {
                while (acquire(&ready[other]) == 0) {}
                proxy_fence();
                left = c + size_t(other) * M * N;
            }
#pragma unroll 1
            for (uint32_t i = 0; i < chunks; i++) {
                wait(&empty[stage], parity ^ 1);
                expect(&full[stage], sizeof(Stage));
                copy(ring[stage].left, left + i * K * M, sizeof ring[0].left, &full[stage]);
                copy(ring[stage].right, b + i * K * N, sizeof ring[0].right, &full[stage]);
                if (++stage == STAGES) { stage = 0; parity ^= 1; }
            }
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const uint32_t t = threadIdx.x - 128, row = t / 16 * 8, column = t % 16 * 16;
        for (int part = 0; part < 2; part++) {
            uint32_t tile[16][8] = {};
            for (uint32_t i = 0; i < chunks; i++) {
                wait(&full[stage], parity);
                for (int k = 0; k < K; k++) {
                    uint32_t left[8], right[16];
#pragma unroll
                    for (int y = 0; y < 8; y++) left[y] = ring[stage].left[k][row + y];
#pragma unroll
                    for (int x = 0; x < 16; x++) right[x] = ring[stage].right[k][column + x];
#pragma unroll
                    for (int x = 0; x < 16; x++)
#pragma unroll
                        for (int y = 0; y < 8; y++) tile[x][y] += left[y] * right[x];
                }
                arrive(&empty[stage]);
                if (++stage == STAGES) { stage = 0; parity ^= 1; }
            }
            if (part == 0) {
                // Column by column, as the second product reads them, and only those.
                uint32_t* out = c + size_t(blockIdx.x) * M * N + row;
#pragma unroll
                for (int x = 0; x < 16; x++)
                    if (column + x < chunks * K)
#pragma unroll
                        for (int y = 0; y < 8; y += 4)
                            *reinterpret_cast<uint4*>(out + (column + x) * M + y) =
                                make_uint4(tile[x][y], tile[x][y + 1], tile[x][y + 2], tile[x][y + 3]);
                proxy_fence();
                asm volatile("bar.sync 1, 256;" ::: "memory");
                if (t == 0) {
                    if (RACY)
                        relaxed(&ready[blockIdx.x]);
                    else
                        release(&ready[blockIdx.x]);
                }
            } else {
                uint32_t mixed = 0;
#pragma unroll
                for (int x = 0; x < 16; x++)
#pragma unroll
                    for (int y = 0; y < 8; y += 4)
                        mixed += (tile[x][y] ^ tile[x][y + 1] * 3 ^ tile[x][y + 2] * 5 ^ tile[x][y + 3] * 7) * (column + x + 1);
                atomicAdd(&sum[blockIdx.x], mixed);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(384, 1)
warp_specialised_racy(const uint32_t* a, const uint32_t* b, uint32_t* c, uint32_t* ready, uint32_t* sum, uint32_t chunks) {
    products<true>(a, b, c, ready, sum, chunks);
}

extern "C" __global__ void __launch_bounds__(384, 1)
warp_specialised_fixed(const uint32_t* a, const uint32_t* b, uint32_t* c, uint32_t* ready, uint32_t* sum, uint32_t chunks) {
    products<false>(a, b, c, ready, sum, chunks);
}
