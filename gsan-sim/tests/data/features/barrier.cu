#include "c.h"
#include <cuda/barrier>
#include <cuda/pipeline>
#include <cuda/latch>
#include <cuda/semaphore>
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
namespace cg = cooperative_groups;
K(k) {
  auto b = cg::this_thread_block(); unsigned t = threadIdx.x, n = blockDim.x;
  __shared__ cuda::barrier<cuda::thread_scope_block> bar; __shared__ alignas(128) unsigned buf[4][256];
  if (t == 0) init(&bar, n); b.sync();
  auto tok = bar.arrive(); bar.wait(std::move(tok)); bar.arrive_and_wait();
  cuda::memcpy_async(b, buf[0], in, cuda::aligned_size_t<16>(n * 4), bar); bar.arrive_and_wait(); CHECK(1, buf[0][(t + 7) % n] == (t + 7) % n);
  cuda::memcpy_async(&buf[1][t], in + t, 4, bar); bar.arrive_and_wait(); CHECK(2, buf[1][(t + 7) % n] == (t + 7) % n);
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> st; auto pipe = cuda::make_pipeline(b, &st);
  unsigned sum = 0; for (unsigned i = 0; i < 2; i++) { pipe.producer_acquire(); cuda::memcpy_async(b, buf[i], in + i * n, n * 4, pipe); pipe.producer_commit(); }
  for (unsigned i = 0; i < 6; i++) { pipe.consumer_wait(); sum += buf[i % 2][n - 1 - t]; pipe.consumer_release(); pipe.producer_acquire(); if (i + 2 < 6) cuda::memcpy_async(b, buf[i % 2], in + (i + 2) * n, n * 4, pipe); pipe.producer_commit(); }
  CHECK(3, sum == 6 * (n - 1 - t) + 15 * n); b.sync();
  auto tp = cuda::make_pipeline(); tp.producer_acquire(); cuda::memcpy_async(&buf[2][t], in + t, 4, tp); tp.producer_commit(); tp.consumer_wait(); CHECK(4, buf[2][t] == t); tp.consumer_release();
  cg::memcpy_async(b, buf[3], in, n * 4); cg::wait(b); CHECK(5, buf[3][(t + 9) % n] == (t + 9) % n);
  __shared__ alignas(16) char lam[sizeof(cuda::latch<cuda::thread_scope_block>)]; auto &la = *(cuda::latch<cuda::thread_scope_block> *)lam; __shared__ alignas(16) char sm[64]; auto &sem = *(cuda::counting_semaphore<cuda::thread_scope_block, 4> *)sm; __shared__ unsigned inside, most;
  if (t == 0) { new (&la) cuda::latch<cuda::thread_scope_block>(n); new (&sem) cuda::counting_semaphore<cuda::thread_scope_block, 4>(4); inside = most = 0; } b.sync(); la.arrive_and_wait(); 
  if (t % 32 == 0) { sem.acquire(); unsigned c = atomicAdd_block(&inside, 1) + 1; atomicMax_block(&most, c); atomicSub_block(&inside, 1); sem.release(); } b.sync(); CHECK(6, most >= 1 && most <= 4);
  cuda::atomic_ref<unsigned, cuda::thread_scope_device> ar(out[10]); ar.fetch_add(1, cuda::memory_order_acq_rel); ar.fetch_max(2); cuda::atomic_ref<unsigned short, cuda::thread_scope_device> a16(((unsigned short *)out)[30]); a16.fetch_add(1); cuda::atomic_ref<unsigned char> a8(((unsigned char *)out)[70]); a8.fetch_xor(1); cuda::atomic_ref<float, cuda::thread_scope_device> af(((float *)out)[20]); af.fetch_add(1.f); b.sync(); CHECK(7, ((unsigned short *)out)[30] == n); CHECK(8, ((unsigned char *)out)[70] == n % 2); CHECK(9, ((float *)out)[20] == n); __shared__ alignas(8) char am[8]; auto &a64 = *(cuda::atomic<unsigned long long, cuda::thread_scope_block> *)am; if (t == 0) a64.store(0, cuda::memory_order_relaxed); b.sync(); a64.fetch_add(t, cuda::memory_order_release); b.sync(); CHECK(10, a64.load(cuda::memory_order_acquire) == n * (n - 1) / 2); unsigned exp = 5; CHECK(11, !ar.compare_exchange_strong(exp, 6) || n == 4);
  bar.arrive_and_wait(); if (t < n / 2) bar.arrive_and_drop(); else { bar.arrive_and_wait(); bar.arrive_and_wait(); }
}
