// Notices as receivers get them.
#include "controller/notices/notice_text.h"

#include "base/json_at.h"
#include "base/split.h"
#include "base/utf8.h"
#include "controller/notices/book.h"
#include "tests/catch.h"

using namespace muster;
using namespace muster::notices;

namespace {

// That of docs/notify.md, as a cause of three silent nodes makes it.
Notice some_notice() {
  Notice out;
  out.id = "3fa9c0ffee12-7";
  out.time = 1'767'225'600'000 + 90 * kMinute;
  out.state = NoticeState::begun;
  out.urgent = true;
  out.kind = "node_silent";
  out.cause = "3fa9c0ffee12";
  out.what = "3 of 3 nodes behind switch leaf3 are silent";
  out.next = "muster power state gpu[01-03]";
  out.nodes = {"gpu01", "gpu02", "gpu03"};
  out.common = "switch";
  out.common_value = "leaf3";
  out.since = 1'767'225'600'000;
  return out;
}

}  // namespace

TEST_CASE("notices: the plain JSON has what a program needs", "[notices]") {
  const Json json = plain_json(some_notice(), "gaggle");
  CHECK(json["id"] == "3fa9c0ffee12-7");
  CHECK(json["time"] == "2026-01-01T01:30:00Z");
  CHECK(json["cluster"] == "gaggle");
  CHECK(json["state"] == "begun");
  CHECK(json["kind"] == "node_silent");
  CHECK(json["urgent"] == true);
  CHECK(json["nodes"] == Json({"gpu01", "gpu02", "gpu03"}));
  CHECK(json["common"]["switch"] == "leaf3");
  CHECK(json["next"] == "muster power state gpu[01-03]");
  CHECK(json["detail"] == "");
  CHECK(json["since"] == "2026-01-01T00:00:00Z");
  Notice of_day;
  of_day.state = NoticeState::daily;
  CHECK(plain_json(of_day, "gaggle")["since"].is_null());
  const Json test = plain_json(test_notice("1", 1'767'225'600'000), "gaggle");
  CHECK(test["state"] == "test");
  CHECK(test["open"] == false);  // it is about no cause
}

TEST_CASE("notices: Slack's marks in a text from a node are none", "[notices]") {
  Notice notice = some_notice();
  notice.what = "<!channel> & more";
  const std::string text = text_at(webhook_json(notice, "gaggle", WebhookShape::slack), "text");
  CHECK(text.find("<!channel>") == std::string::npos);
  CHECK(text.find("&lt;!channel&gt; &amp; more") != std::string::npos);
}

TEST_CASE("notices: Teams gets a card with a block per line", "[notices]") {
  const Json json = webhook_json(some_notice(), "gaggle", WebhookShape::teams);
  CHECK(json["type"] == "message");
  const Json& content = json["attachments"][0]["content"];
  CHECK(content["type"] == "AdaptiveCard");
  CHECK(content["body"].size() >= 4);
  for (const Json& block : content["body"])
    CHECK(block["text"].get<std::string>().find('\n') == std::string::npos);
}

TEST_CASE("notices: Markdown in a text from a node is none in Teams", "[notices]") {
  Notice notice = some_notice();
  const std::string marks = "\\[]()*_`~";
  notice.what = "[log in](http://example.org) **now** `x` ~y~ \\[z] node_silent";
  const Json json = webhook_json(notice, "gaggle", WebhookShape::teams);
  const std::string title = text_at(json["attachments"][0]["content"]["body"][0], "text");
  std::string plain;
  for (size_t i = 0; i < title.size(); ++i) {
    const bool escaped = title[i] == '\\';
    if (escaped) ++i;
    REQUIRE(i < title.size());
    CHECK(escaped == (marks.find(title[i]) != std::string::npos));
    plain += title[i];
  }
  CHECK(plain == headline(notice, "gaggle"));
}

TEST_CASE("notices: text from a node adds no header to a mail", "[notices]") {
  Notice notice = some_notice();
  notice.what = "it\r\nBcc: all@example.org\n\nbroke \xc3\xbc";
  const std::string mail = mail_of(notice, "gaggle", {{"root", "ops"}, "muster"});
  const std::string head = mail.substr(0, mail.find("\n\n"));
  CHECK(head.find("\nBcc") == std::string::npos);
  CHECK(head.find("To: root, ops\n") != std::string::npos);
  CHECK(head.find("From: muster\n") != std::string::npos);
  CHECK(head.find("Message-ID: <3fa9c0ffee12-7@gaggle.muster>") != std::string::npos);
  for (const char c : head) CHECK(static_cast<unsigned char>(c) < 0x80);
}

TEST_CASE("notices: a summary of a thousand changes is a short text and a whole JSON", "[notices]") {
  Notice notice = some_notice();
  notice.state = NoticeState::summary;
  notice.nodes.clear();
  for (int i = 0; i < 1000; ++i)
    notice.changed.push_back({std::to_string(i), "node_failed", "it broke", NoticeState::begun, true});
  CHECK(notices::text_of(notice, "gaggle").size() < 4000);
  const Json json = plain_json(notice, "gaggle");
  CHECK(json["changed"].size() == 1000);
  CHECK(json["changed"][999]["cause"] == "999");
}

TEST_CASE("notices: a text that is cut ends in a mark, and no character is split", "[notices]") {
  const std::string mark = "…", umlaut = "ü";
  CHECK(shortened("abcdef", 6) == "abcdef");
  CHECK(shortened("abcdefg", 6) == "abc" + mark);
  CHECK(shortened(umlaut + umlaut + umlaut + umlaut, 6) == umlaut + mark);

  Notice notice = some_notice();
  for (int i = 0; i < 1000; ++i) notice.detail += umlaut;
  notice.what = notice.detail + "!";
  const std::vector<std::string> lines = split_lines(notices::text_of(notice, "gaggle"));
  CHECK(lines.at(0).ends_with(mark));
  CHECK(lines.at(1).ends_with(mark));
  for (const std::string& line : lines)
    for (std::string_view rest = line; !rest.empty(); rest.remove_prefix(read_utf8(rest).bytes))
      CHECK(read_utf8(rest).valid);
}
