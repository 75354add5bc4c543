// The only file that includes CLI11: it compiles slowly.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "base/value.h"
#include "commands.h"

namespace rondo::app {
namespace {

void examples(CLI::App* app, const std::string& text) {
  app->footer("Examples:\n" + text);
}

void add_train(CLI::App& top, Request& request) {
  TrainCommand& c = request.train;
  CLI::App* app = top.add_subcommand("train", "Train a model");
  app->add_option("CONFIG", c.config, "Run configuration (TOML)")->required();
  app->add_option("--out", c.out, "Run folder [runs/NAME of the configuration]");
  app->add_option("--set", c.set, "SECTION.KEY=VALUE over the file; may be repeated")
      ->allow_extra_args(false);
  app->add_option("--ranks", c.ranks, "Threads of this process that are a rank each")
      ->capture_default_str();
  app->add_flag("--resume", c.resume, "Go on from the run folder's latest checkpoint");
  app->add_option("--trace", c.trace, "Write spans of all work as JSON for Perfetto");
  app->add_option("--wait-sites", c.wait_sites, "Write the names of the waits that the run passed")
      ->group("Tests");
  examples(
      app,
      "  rondo train configs/demo.toml --out runs/demo\n"
      "  rondo train configs/demo.toml --set train.steps=100 --set train.learning_rate=2e-3\n"
      "  rondo train configs/demo.toml --ranks 4 --set parallel.context=2 --set parallel.expert=2\n"
      "  rondo train configs/demo.toml --out runs/demo --resume");
  app->callback([&] { request.kind = Request::Kind::kTrain; });
}

void add_eval(CLI::App& top, Request& request) {
  EvalCommand& c = request.eval;
  CLI::App* app = top.add_subcommand("eval", "Loss of a model on packed data");
  app->add_option("FOLDER", c.folder, "Run folder, checkpoint, or hub folder")->required();
  app->add_option("--data", c.data, "Prefix of packed data")->required();
  app->add_option("--sequence-length", c.sequence_length, "Tokens [that of the run]");
  app->add_option("--batch", c.batch, "Sequences at once")->capture_default_str();
  app->add_option("--logits", c.logits,
                  "Write ids and logits of the first batch to this safetensors file instead")
      ->type_name("FILE");
  app->add_option("--device", c.device, "cpu or emu:SIZE")->capture_default_str();
  app->add_option("--threads", c.threads, "0: all")->capture_default_str();
  examples(
      app,
      "  rondo eval runs/demo --data build/demo/kjv-valid\n"
      "  rondo eval runs/demo/step-400 --data build/demo/kjv-valid --sequence-length 512\n"
      "  rondo eval runs/demo --data build/demo/kjv-valid --batch 2 --logits logits.safetensors");
  app->callback([&] { request.kind = Request::Kind::kEval; });
}

void add_generate(CLI::App& top, Request& request) {
  GenerateCommand& c = request.generate;
  CLI::App* app = top.add_subcommand("generate", "Text from a model");
  app->add_option("FOLDER", c.folder, "Run folder or checkpoint")->required();
  app->add_option("--prompt", c.prompt, "Text to begin with");
  app->add_option("--tokens", c.tokens, "How many to add")->capture_default_str();
  app->add_option("--temperature", c.temperature, "0: always the likeliest token")
      ->capture_default_str();
  app->add_option("--top-p", c.top_p, "Probability mass to draw from")->capture_default_str();
  app->add_option("--seed", c.seed, "The same seed, the same text")->capture_default_str();
  app->add_option("--context", c.context, "Tokens of context kept [the run's sequence length]");
  app->add_option("--tokenizer", c.tokenizer, "bytes or a SentencePiece model [the checkpoint's]");
  app->add_option("--device", c.device, "cpu or emu:SIZE")->capture_default_str();
  app->add_option("--threads", c.threads, "0: all")->capture_default_str();
  examples(app,
           "  rondo generate runs/demo --prompt 'In the beginning' --tokens 200\n"
           "  rondo generate runs/demo --prompt 'And he said' --temperature 0 --tokens 50");
  app->callback([&] { request.kind = Request::Kind::kGenerate; });
}

void add_data(CLI::App& top, Request& request) {
  CLI::App* data = top.add_subcommand("data", "Text to packed data");
  data->require_subcommand(1);
  PackCommand& p = request.pack;
  CLI::App* pack = data->add_subcommand("pack", "Files and folders to PREFIX.bin and PREFIX.idx");
  pack->add_option("INPUT", p.inputs, "Text files, and folders of them")->required();
  pack->add_option("--out", p.out, "PREFIX of the files to write")->required();
  pack->add_option("--tokenizer", p.tokenizer, "bytes, or a SentencePiece model file")
      ->capture_default_str();
  pack->add_option("--validation-fraction", p.validation_fraction,
                   "Held out as PREFIX-valid; the rest is PREFIX-train [0: one dataset]");
  pack->add_option("--split-by", p.split_by, "bytes (the last ones) or documents (by chance)")
      ->capture_default_str();
  pack->add_option("--seed", p.seed, "Of the choice of documents")->capture_default_str();
  pack->add_flag("--overwrite", p.overwrite, "Replace packed data that is there");
  examples(pack,
           "  rondo data pack book.txt --out data/book --validation-fraction 0.05\n"
           "  rondo data pack src/ docs/ --out data/code --tokenizer data/code.model");
  pack->callback([&] { request.kind = Request::Kind::kPack; });

  TrainTokenizerCommand& t = request.train_tokenizer;
  CLI::App* tokenizer = data->add_subcommand("train-tokenizer", "Train a SentencePiece model");
  tokenizer->add_option("INPUT", t.inputs, "Text files, and folders of them")->required();
  tokenizer->add_option("--out", t.out, "The .model file to write")->required();
  tokenizer->add_option("--vocab-size", t.vocab_size, "Tokens")->capture_default_str();
  tokenizer->add_option("--algorithm", t.algorithm, "bpe or unigram")->capture_default_str();
  examples(tokenizer,
           "  rondo data train-tokenizer book.txt --out data/book.model --vocab-size 2048");
  tokenizer->callback([&] { request.kind = Request::Kind::kTrainTokenizer; });

  InspectCommand& i = request.inspect;
  CLI::App* inspect = data->add_subcommand("inspect", "What packed data holds");
  inspect->add_option("PREFIX", i.prefix, "As given to pack")->required();
  inspect->add_option("--tokens", i.tokens, "First tokens to show")->capture_default_str();
  examples(inspect, "  rondo data inspect data/book-train");
  inspect->callback([&] { request.kind = Request::Kind::kInspect; });
}

}  // namespace

Request parse_command_line(int argc, char** argv) {
  Request request;
  CLI::App top("Rondo trains mixture-of-experts transformers on long contexts.", "rondo");
  top.require_subcommand(1);
  add_train(top, request);
  add_eval(top, request);
  add_generate(top, request);
  add_data(top, request);
  CLI::App* doctor = top.add_subcommand("doctor", "What this build and machine can do");
  examples(doctor, "  rondo doctor");
  doctor->callback([&] { request.kind = Request::Kind::kDoctor; });
  examples(&top,
           "  rondo data pack book.txt --out data/book --validation-fraction 0.05\n"
           "  rondo train configs/demo.toml --out runs/demo\n"
           "  rondo eval runs/demo --data data/book-valid\n"
           "  rondo generate runs/demo --prompt 'In the beginning'\n"
           "  rondo train --help");
  std::vector<std::string> names;
  for (const CLI::App* app : top.get_subcommands(nullptr)) names.push_back(app->get_name());
  if (argc > 1 && argv[1][0] != '-' &&
      std::find(names.begin(), names.end(), argv[1]) == names.end()) {
    const std::string near = nearest(argv[1], names);
    std::cerr << "rondo: there is no command " << argv[1]
              << (near.empty() ? "; rondo --help shows what there is"
                               : "; did you mean " + near + "?")
              << "\n";
    request.exit_code = 2;
    return request;
  }
  try {
    top.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    request.exit_code = top.exit(help);
    request.kind = Request::Kind::kNone;
  } catch (const CLI::ParseError& error) {
    std::cerr << "rondo: " << error.what() << "; rondo --help shows what there is\n";
    request.exit_code = 2;
    request.kind = Request::Kind::kNone;
  }
  return request;
}

}  // namespace rondo::app
