// A run's ranks as the training loop sees them: the axes of the layout, their groups, and which
// part of the work is this rank's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/model.h"
#include "parallel/groups.h"
#include "parallel/mesh.h"
#include "parallel/placement.h"

namespace rondo {

class Ranks {
 public:
  // Splits the world along the mesh. Every rank calls it. A null world is one rank. Calls below run
  // behind the work of `stream` and return on the host. `wave_tokens`: of expert dispatch.
  Ranks(Stream& stream, Communicator* world, const Mesh& mesh, TokenPlacement placement,
        int64_t wave_tokens);

  const RankGroups& groups() const { return groups_; }
  int rank() const { return groups_.world ? groups_.world->rank() : 0; }
  int size() const { return groups_.world ? groups_.world->size() : 1; }
  bool first() const { return rank() == 0; }

  // Samples of a batch belong to the ranks of the data axis in equal stretches.
  int64_t data_rank() const { return groups_.data ? groups_.data->rank() : 0; }
  int64_t data_size() const { return groups_.data ? groups_.data->size() : 1; }

  // This rank's tokens of a micro-batch of its samples.
  Batch part(Batch whole, int64_t window) const;

  // Sums over ranks that hold other samples: counts of whole samples, which the ranks of the
  // context axis know alike.
  void sum_over_data(std::vector<double>& values) const;
  BatchCounts sum_over_data(const BatchCounts& counts) const;
  // The sum over all ranks.
  double sum_over_all(double value) const;
  // InputError on every rank when they do not all hold the same text; `what` says what it is.
  void expect_same(const std::string& what, const std::string& text) const;
  void barrier() const;

 private:
  Stream& stream_;
  std::unique_ptr<Communicator> data_, context_, expert_, expert_data_;
  RankGroups groups_;
  TokenPlacement placement_;
};

}  // namespace rondo
