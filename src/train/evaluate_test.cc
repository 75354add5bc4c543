#include "train/evaluate.h"

#include <cmath>

#include "model/model_testing.h"
#include "train/data/test_dataset.h"

namespace rondo {
namespace {

TEST(Evaluate, EveryTokenCountsOnceHoweverSequencesAreBatched) {
  const TestFolder folder;
  const Documents documents = {{1, 2, 3, 4, 5, 0}, {6, 0}, {7, 8, 9, 10, 1, 2, 3, 4, 0}, {5, 6, 0}};
  SequenceLayout layout;
  layout.sequence_length = 5;
  layout.vocab_size = 11;
  const Evaluation data(Corpus(write_dataset(folder, "d", documents, 0), layout,
                               [](const std::string& text) { ADD_FAILURE() << text; }));
  ASSERT_EQ(data.sequences(), 5);  // the last one short
  ASSERT_EQ(data.predicted_tokens(), 20);

  Log log;
  auto device = make_device("emu:64MiB", {.threads = 2});
  Context ctx(*device, log);
  const ModelConfig config = read_config(kTinyDeepSeek, R"({"initializer_range": 0.3})");
  Model model(ctx, config, {.training = false});
  model.set_weights(initial_values(model.table(), config, 3));
  const EvaluationResult one = evaluate(model, data, 1, 0);
  EXPECT_EQ(one.tokens, 20);
  EXPECT_NEAR(*one.bits_per_byte, one.loss * 20 / std::log(2.0) / 16, 1e-9);
  for (const int64_t batch : {2, 3, 4, 5, 100}) {
    const EvaluationResult more = evaluate(model, data, batch, 0);
    EXPECT_EQ(more.tokens, 20) << batch;
    EXPECT_NEAR(more.loss, one.loss, 1e-6 * one.loss) << batch;
  }
  const EvaluationResult some = evaluate(model, data, 2, 3);
  EXPECT_EQ(some.tokens, 13);  // a document's last token predicts none
  EXPECT_FALSE(some.bits_per_byte);
}

}  // namespace
}  // namespace rondo
