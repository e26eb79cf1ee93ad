// Runs the litmus tests of weak memory on a GPU and prints how often it has shown each outcome.
//
//   cargo run --release -p gsan-sim --example weak_gpu -- write DIR
//   nvcc -O2 -arch=sm_90 -o litmus bench/kernels/litmus.cu -lcuda
//   ./litmus DIR LAUNCHES > bench/results/weak-memory-h200.txt
//
// Blocks that hammer memory run beside each launch. What it prints is read by the example's `compare`.
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <cuda_runtime.h>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

static void check(int error, const char *what) {
    if (error != 0) {
        fprintf(stderr, "%s: error %d\n", what, error);
        exit(1);
    }
}
#define CHECK(call) check((int)(call), #call)

constexpr uint32_t ROUNDS = 64, APART = 64;

__global__ void hammer(uint32_t *words, uint32_t mask, uint32_t turns) {
    uint32_t at = (blockIdx.x * blockDim.x + threadIdx.x) * 2654435761u, sum = 0;
    for (uint32_t i = 0; i < turns; i++) {
        at = at * 1664525u + 1013904223u;
        uint32_t &word = words[(at >> 8) & mask];
        if (i % 3 == 0) {
            word = at;
        } else if (i % 3 == 1) {
            sum += word;
        } else {
            atomicAdd(&word, 1);
        }
    }
    if (sum == 0x12345678) {
        words[0] = sum;
    }
}

int main(int argc, char **argv) {
    std::string dir = argc > 1 ? argv[1] : ".";
    int launches = argc > 2 ? atoi(argv[2]) : 16;
    CHECK(cudaFree(nullptr));
    CUmodule module;
    CHECK(cuModuleLoad(&module, (dir + "/litmus.ptx").c_str()));
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int driver = 0;
    CHECK(cudaDriverGetVersion(&driver));
    printf("# %s, CUDA driver %d, %d launches of each\n", device.name, driver, launches);
    const uint32_t threads = 16 * device.multiProcessorCount;
    const uint32_t most = threads * ROUNDS, hammered = 1 << 21;
    CUdeviceptr words, out, met, scratch;
    CHECK(cuMemAlloc(&words, (size_t)most * 3 * APART));
    CHECK(cuMemAlloc(&out, (size_t)most * 32));
    CHECK(cuMemAlloc(&met, (size_t)most * 4));
    CHECK(cuMemAlloc(&scratch, (size_t)hammered * 4));
    cudaStream_t one, other;
    CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    std::ifstream list(dir + "/litmus.txt");
    std::string line;
    for (int test = 0; std::getline(list, line); test++) {
        std::istringstream in(line);
        uint32_t roles;
        std::string place, name;
        in >> roles >> place;
        std::getline(in >> std::ws, name);
        CUfunction kernel;
        CHECK(cuModuleGetFunction(&kernel, module, ("k" + std::to_string(test)).c_str()));
        const bool block = place == "block";
        const uint32_t groups = threads / roles, each = groups * ROUNDS;
        std::map<std::array<uint32_t, 11>, uint64_t> seen;
        std::vector<uint32_t> results((size_t)each * 8), finals((size_t)each * 3 * APART / 4);
        for (int launch = 0; launch < launches; launch++) {
            CHECK(cuMemsetD8Async(words, 0, (size_t)each * 3 * APART, one));
            CHECK(cuMemsetD8Async(out, 0, (size_t)each * 32, one));
            CHECK(cuMemsetD8Async(met, 0, (size_t)each * 4, one));
            if (launch % 2 == 1) {
                hammer<<<device.multiProcessorCount, 128, 0, other>>>((uint32_t *)scratch, hammered - 1, 2000);
            }
            uint32_t mode = 0x9E3779B9u * (launch + 1), zero = 0;
            void *params[] = {&words, &out, &met, &mode, &zero};
            CHECK(cuLaunchKernel(kernel, block ? groups : groups * roles, 1, 1, block ? 32 * roles : 1, 1, 1, 0, one, params, nullptr));
            CHECK(cuMemcpyDtoHAsync(results.data(), out, results.size() * 4, one));
            CHECK(cuMemcpyDtoHAsync(finals.data(), words, finals.size() * 4, one));
            CHECK(cudaStreamSynchronize(one));
            CHECK(cudaStreamSynchronize(other));
            for (uint32_t i = 0; i < each; i++) {
                std::array<uint32_t, 11> outcome;
                for (int r = 0; r < 8; r++) {
                    outcome[r] = results[8 * i + r];
                }
                for (int w = 0; w < 3; w++) {
                    outcome[8 + w] = finals[(size_t)(3 * i + w) * APART / 4];
                }
                seen[outcome]++;
            }
        }
        printf("= %llu %s\n", (unsigned long long)each * launches, name.c_str());
        for (auto &[outcome, count] : seen) {
            printf("%llu", (unsigned long long)count);
            for (uint32_t value : outcome) {
                printf(" %u", value);
            }
            printf("\n");
        }
        fflush(stdout);
    }
    return 0;
}
