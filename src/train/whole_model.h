// All that the ranks hold together, in the layout that one rank alone would have. Checkpoints are
// written and read in it, so that a run may go on in another layout than it began in.
#pragma once

#include <vector>

#include "model/parameters.h"
#include "train/ranks.h"

namespace rondo {

class WholeModel {
 public:
  // `mine`: the table of this rank's model. Both must outlive this.
  WholeModel(const ModelConfig& config, const ParameterTable& mine, const Ranks& ranks);

  const ParameterTable& table() const { return table_; }

  // This rank's rows of the whole, and gaps of zero between them.
  std::vector<float> held(std::vector<float> whole) const;

  // The whole on the first rank, empty on others, from a flat device tensor that every rank has in
  // its own layout. Every rank calls it; returns on the host.
  std::vector<float> gather(Stream& stream, const View& held) const;

 private:
  bool split() const { return groups_.expert != nullptr; }
  const ModelConfig& config_;
  const ParameterTable& mine_;
  const ParameterTable table_;
  const RankGroups groups_;
  const bool first_;
};

}  // namespace rondo
