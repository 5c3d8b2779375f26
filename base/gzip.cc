#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace muster {
namespace {

constexpr int kGzipWindow = 15 + 16;  // adding 16 selects gzip's header instead of zlib's

// zlib takes the input as a pointer to non-const, but does not write to it.
Bytef* bytes_of(std::string_view text) { return reinterpret_cast<Bytef*>(const_cast<char*>(text.data())); }

bool fits(size_t size) { return size <= std::numeric_limits<uInt>::max() / 2; }

}  // namespace

Result<std::string> gzip(std::string_view content) {
  z_stream stream = {};
  if (!fits(content.size()) ||
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail(Code::failed, "packing: out of memory");
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = bytes_of(content);
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = bytes_of(out);
  stream.avail_out = static_cast<uInt>(out.size());
  const int state = deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) return fail(Code::failed, "packing: zlib did not finish the stream");
  out.shrink_to_fit();
  return out;
}

Result<std::string> gunzip(std::string_view packed, size_t most) {
  z_stream stream = {};
  if (!fits(packed.size()) || !fits(most) || inflateInit2(&stream, kGzipWindow) != Z_OK)
    return fail(Code::corrupt, "unpacking: the content is too large");
  std::string out;
  out.reserve(most);  // callers know the size
  stream.next_in = bytes_of(packed);
  stream.avail_in = static_cast<uInt>(packed.size());
  int state = Z_OK;
  constexpr size_t kPiece = 256 << 10;
  std::string piece(std::min(kPiece, most + 1), '\0');
  while (state == Z_OK && out.size() <= most) {
    stream.next_out = bytes_of(piece);
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  const bool behind = stream.avail_in > 0;
  inflateEnd(&stream);
  if (state != Z_STREAM_END || behind || out.size() > most)
    return fail(Code::corrupt,
                "unpacking: invalid gzip data, or content of more than " + std::to_string(most) + " bytes");
  return out;
}

}  // namespace muster
