// SPDX-License-Identifier: Apache-2.0
// Makes a real checkpoint in a few seconds: trains a network to guess the next character of a text.
//   character_model train CHECKPOINT TEXT...       trains on the texts and writes CHECKPOINT (float32 .safetensors)
//   character_model evaluate CHECKPOINT TEXT...    prints the loss of a checkpoint on the same texts' last tenth
// 1.5 million weights with Adam's state, as training frameworks leave them: step count, tiny second moments and all.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::size_t characters = 96;  // printable ASCII, and one for everything else
constexpr std::size_t context = 12;     // input characters
constexpr std::size_t embedded = 32;    // numbers per character
constexpr std::size_t hidden = 1024;
constexpr std::size_t batch = 24;
constexpr int steps = 500;
constexpr float learning_rate = 1e-3f;
constexpr float first_decay = 0.9f, second_decay = 0.99f;

// A weight matrix, inputs by outputs, with its optimizer state.
struct Weights {
  std::string name;
  std::size_t rows, columns;
  std::vector<float> value, gradient, first_moment, second_moment;

  Weights(std::string its_name, std::size_t its_rows, std::size_t its_columns)
      : name(std::move(its_name)), rows(its_rows), columns(its_columns) {
    for (auto* numbers : {&value, &gradient, &first_moment, &second_moment}) numbers->resize(rows * columns);
  }
  void randomize(std::mt19937& random) {
    std::normal_distribution<float> normal(0.0f, std::sqrt(2.0f / static_cast<float>(rows)));
    for (float& weight : value) weight = normal(random);
  }
};

// y (batch x columns) = bias + x (batch x rows) * weights
void forward(const std::vector<float>& x, const Weights& weights, const Weights& bias, std::vector<float>& y) {
  const std::size_t rows = weights.rows, columns = weights.columns, examples = x.size() / rows;
  y.resize(examples * columns);
  for (std::size_t e = 0; e < examples; ++e) std::copy(bias.value.begin(), bias.value.end(), &y[e * columns]);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* row = &weights.value[i * columns];
    for (std::size_t e = 0; e < examples; ++e) {
      const float factor = x[e * rows + i];
      if (factor == 0.0f) continue;  // half of the outputs of a ReLU are zero
      float* out = &y[e * columns];
      for (std::size_t j = 0; j < columns; ++j) out[j] += factor * row[j];
    }
  }
}

float dot(const float* a, const float* b, std::size_t count) {
  float partial[16] = {};  // independent sums, so that the compiler may use vectors
  for (std::size_t i = 0; i < count; i += 16) {
    for (std::size_t lane = 0; lane < 16; ++lane) partial[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0.0f;
  for (const float lane : partial) sum += lane;
  return sum;
}

// Computes the gradients of the weights, of the bias and of x from dy.
void backward(const std::vector<float>& x, const std::vector<float>& dy, Weights& weights, Weights& bias,
              std::vector<float>& dx) {
  const std::size_t rows = weights.rows, columns = weights.columns, examples = x.size() / rows;
  dx.assign(x.size(), 0.0f);
  std::fill(bias.gradient.begin(), bias.gradient.end(), 0.0f);
  for (std::size_t e = 0; e < examples; ++e) {
    for (std::size_t j = 0; j < columns; ++j) bias.gradient[j] += dy[e * columns + j];
  }
  for (std::size_t i = 0; i < rows; ++i) {
    float* gradient = &weights.gradient[i * columns];
    std::fill_n(gradient, columns, 0.0f);
    for (std::size_t e = 0; e < examples; ++e) {
      const float* out = &dy[e * columns];
      dx[e * rows + i] = dot(out, &weights.value[i * columns], columns);
      const float factor = x[e * rows + i];
      if (factor == 0.0f) continue;
      for (std::size_t j = 0; j < columns; ++j) gradient[j] += factor * out[j];
    }
  }
}

void relu(std::vector<float>& x) {
  for (float& value : x) value = std::max(value, 0.0f);
}
void relu_backward(const std::vector<float>& y, std::vector<float>& dy) {
  for (std::size_t i = 0; i < y.size(); ++i) dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

class Model {
 public:
  Model() {
    std::mt19937 random(7);
    for (const std::size_t matrix : {0, 1, 3, 5}) all_[matrix].randomize(random);
  }

  // Returns the mean negative logarithm of the probability of the right character; saves what learn() needs.
  float loss(std::span<const std::uint8_t> text, std::span<const std::size_t> starts) {
    x0_.resize(starts.size() * context * embedded);
    for (std::size_t e = 0; e < starts.size(); ++e) {
      for (std::size_t c = 0; c < context; ++c) {
        std::copy_n(&all_[0].value[text[starts[e] + c] * embedded], embedded, &x0_[(e * context + c) * embedded]);
      }
    }
    forward(x0_, all_[1], all_[2], x1_);
    relu(x1_);
    forward(x1_, all_[3], all_[4], x2_);
    relu(x2_);
    forward(x2_, all_[5], all_[6], probabilities_);

    double sum = 0.0;
    for (std::size_t e = 0; e < starts.size(); ++e) {
      const std::span row(&probabilities_[e * characters], characters);
      const float highest = *std::max_element(row.begin(), row.end());
      float total = 0.0f;
      for (float& value : row) total += value = std::exp(value - highest);
      for (float& value : row) value /= total;
      sum -= std::log(std::max(row[text[starts[e] + context]], 1e-30f));
    }
    return static_cast<float>(sum / static_cast<double>(starts.size()));
  }

  // One step of Adam for the batch that loss() saw last.
  void learn(std::span<const std::uint8_t> text, std::span<const std::size_t> starts) {
    std::vector<float> dy = probabilities_, dx;
    for (std::size_t e = 0; e < starts.size(); ++e) dy[e * characters + text[starts[e] + context]] -= 1.0f;
    for (float& value : dy) value /= static_cast<float>(starts.size());
    backward(x2_, dy, all_[5], all_[6], dx);
    relu_backward(x2_, dx);
    backward(x1_, dx, all_[3], all_[4], dy);
    relu_backward(x1_, dy);
    backward(x0_, dy, all_[1], all_[2], dx);
    std::fill(all_[0].gradient.begin(), all_[0].gradient.end(), 0.0f);
    for (std::size_t e = 0; e < starts.size(); ++e) {
      for (std::size_t c = 0; c < context; ++c) {
        float* gradient = &all_[0].gradient[text[starts[e] + c] * embedded];
        for (std::size_t j = 0; j < embedded; ++j) gradient[j] += dx[(e * context + c) * embedded + j];
      }
    }
    ++step_;
    const float first_correction = 1.0f - std::pow(first_decay, step_);
    const float second_correction = 1.0f - std::pow(second_decay, step_);
    for (Weights& weights : all_) {
      for (std::size_t i = 0; i < weights.value.size(); ++i) {
        const float gradient = weights.gradient[i];
        float& first = weights.first_moment[i];
        float& second = weights.second_moment[i];
        first = first_decay * first + (1.0f - first_decay) * gradient;
        second = second_decay * second + (1.0f - second_decay) * gradient * gradient;
        weights.value[i] -=
            learning_rate * (first / first_correction) / (std::sqrt(second / second_correction) + 1e-8f);
      }
    }
  }

  // Writes .safetensors: the length of a JSON header, the header, the numbers.
  void save(const std::string& path) const {
    std::string header = "{\"__metadata__\":{\"trained_by\":\"tensorcast's character_model\"}", data;
    const auto add = [&](const std::string& name, const std::string& shape, std::span<const float> numbers) {
      header += ",\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[" +
                std::to_string(data.size()) + "," + std::to_string(data.size() + numbers.size_bytes()) + "]}";
      data.append(reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes());
    };
    const auto shape = [](const Weights& weights) {
      return (weights.rows == 1 ? "" : std::to_string(weights.rows) + ",") + std::to_string(weights.columns);
    };
    for (const Weights& weights : all_) add("model." + weights.name, shape(weights), weights.value);
    add("optimizer.step", "", {&step_, 1});
    for (const Weights& weights : all_) {
      add("optimizer.second_moment." + weights.name, shape(weights), weights.second_moment);
    }
    header += "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = header.size();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&length), sizeof length) << header << data;
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }

  // Reads the model's tensors from a float32 file written by save() or by a conversion of one.
  void load(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    std::uint64_t length = 0;
    if (bytes.size() < sizeof length) throw std::runtime_error("cannot read " + path);
    std::memcpy(&length, bytes.data(), sizeof length);
    const std::string_view header = std::string_view(bytes).substr(8, length);
    const std::string_view data = std::string_view(bytes).substr(8 + length);
    for (Weights& weights : all_) {
      const std::size_t entry = header.find("\"model." + weights.name + "\"");
      const std::size_t offsets = header.find("\"data_offsets\":[", entry);
      if (offsets == std::string_view::npos || header.substr(entry, offsets - entry).find("\"F32\"") == header.npos) {
        throw std::runtime_error(path + " has no float32 tensor model." + weights.name);
      }
      const std::size_t start = std::stoull(std::string(header.substr(offsets + 16, 20)));
      const std::string_view numbers = data.substr(start, weights.value.size() * sizeof(float));
      std::memcpy(weights.value.data(), numbers.data(), numbers.size());
    }
  }

 private:
  std::vector<Weights> all_ = {
      {"embedding.weight", characters, embedded},
      {"hidden.0.weight", context* embedded, hidden},
      {"hidden.0.bias", 1, hidden},
      {"hidden.1.weight", hidden, hidden},
      {"hidden.1.bias", 1, hidden},
      {"output.weight", hidden, characters},
      {"output.bias", 1, characters},
  };
  float step_ = 0.0f;  // a float32 tensor, as PyTorch's Adam keeps it
  std::vector<float> x0_, x1_, x2_, probabilities_;
};

struct Texts {
  std::vector<std::uint8_t> seen, unseen;  // the last tenth of each text is kept from training
};

Texts read_texts(std::span<char*> paths) {
  Texts texts;
  for (const char* path : paths) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string("cannot read ") + path);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const char byte = bytes[i];
      (i < bytes.size() / 10 * 9 ? texts.seen : texts.unseen)
          .push_back(byte >= ' ' && byte <= '~' ? static_cast<std::uint8_t>(byte - ' ') : characters - 1);
    }
  }
  if (texts.unseen.size() < 2 * context) throw std::runtime_error("the texts are too short to learn from");
  return texts;
}

float evaluate(Model& model, std::span<const std::uint8_t> text) {
  std::vector<std::size_t> starts;
  const std::size_t stride = std::max<std::size_t>(1, text.size() / 400);
  for (std::size_t start = 0; start + context < text.size(); start += stride) starts.push_back(start);
  return model.loss(text, starts);
}

void run(std::string_view command, const std::string& checkpoint, std::span<char*> paths) {
  const Texts texts = read_texts(paths);
  Model model;
  if (command == "evaluate") {
    model.load(checkpoint);
    std::printf("%.4f\n", evaluate(model, texts.unseen));
    return;
  }
  std::mt19937 random(11);
  std::uniform_int_distribution<std::size_t> anywhere(0, texts.seen.size() - context - 1);
  std::vector<std::size_t> starts(batch);
  for (int step = 0; step < steps; ++step) {
    for (std::size_t& start : starts) start = anywhere(random);
    const float loss = model.loss(texts.seen, starts);
    model.learn(texts.seen, starts);
    if (step % 100 == 0) std::printf("step %3d  loss %.3f\n", step, loss);
  }
  std::printf("step %3d  loss %.3f on text not seen in training\n", steps, evaluate(model, texts.unseen));
  model.save(checkpoint);
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (argc < 4 || (command != "train" && command != "evaluate")) {
    std::fputs("usage: character_model train|evaluate CHECKPOINT TEXT...\n", stderr);
    return 2;
  }
  run(command, argv[2], std::span(argv + 3, static_cast<std::size_t>(argc - 3)));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "character_model: %s\n", error.what());
  return 1;
}
