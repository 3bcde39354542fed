// The peer of bench_collectives: MPI_Allreduce of float, in place; "bytes seconds" a line.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (const std::size_t bytes : {1u << 10, 16u << 10, 256u << 10, 4u << 20, 64u << 20}) {
    std::vector<float> values(bytes / sizeof(float), 1);
    std::vector<double> each(bytes >= (4u << 20) ? 15 : 2000);
    for (double& seconds : each) {
      const double begin = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                    MPI_SUM, MPI_COMM_WORLD);
      seconds = MPI_Wtime() - begin;
    }
    std::nth_element(each.begin(), each.begin() + static_cast<long>(each.size() / 2), each.end());
    if (rank == 0) std::printf("%zu %.9f\n", bytes, each[each.size() / 2]);
  }
  MPI_Finalize();
  return 0;
}
