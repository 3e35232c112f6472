// One connection to an SQLite file: statements, rows and transactions, without exceptions.
//
//   ATOLL_TRY(Query query, database.query("SELECT name FROM keys WHERE tenant_id = ?",
//   tenant.number())); ATOLL_TRY(bool found, query.next());
//
// Statements are prepared once and kept by the Database. Sql can be made from a literal only, so no
// value can reach SQL but by binding. A Query binds, steps and reads one run of a statement; while
// it lives, the same SQL must not be asked again. A Database and all that it gave out belong to one
// thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include <sqlite3.h>

#include "base/result.h"

namespace atl::store {

// What a committed row outlives.
enum class Durability : unsigned char {
  kProcess,  // a crash of the process: synchronous=NORMAL, no fsync per commit
  kMachine,  // power loss: synchronous=FULL, one fsync per commit
};

class Sql {
 public:
  template <size_t N>
  consteval Sql(const char (&text)[N]) : text_(text, N - 1) {}
  constexpr std::string_view view() const { return text_; }
  // The literal ends with a NUL.
  constexpr const char* c_str() const { return text_.data(); }

 private:
  std::string_view text_;
};

using Blob = std::span<const unsigned char>;

struct Statement {
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle;
  bool in_use = false;
};

class Query {
 public:
  Query(Query&& other) noexcept;
  Query& operator=(Query&&) = delete;
  ~Query();

  // True: a row is there to read. False: the end.
  Result<bool> next();
  // To the end, for statements that give no rows.
  Result<void> run();

  // The columns of the row, each call takes the next one. A column that is not what was asked for
  // gives zero or nothing and turns the row bad: ask row_done() before using any value.
  int64_t int64();
  uint64_t uint64();
  uint32_t uint32();
  std::string text();
  std::optional<int64_t> int64_or_null();
  std::optional<std::string> text_or_null();
  // A blob of any length.
  std::string bytes();
  template <size_t N>
  std::array<unsigned char, N> blob() {
    std::array<unsigned char, N> bytes{};
    read_blob(bytes);
    return bytes;
  }
  // Every column was taken and was of its type; else the database is corrupt.
  Result<void> row_done();

 private:
  friend class Database;
  explicit Query(Statement& statement);

  void bind(int position, int64_t value);
  void bind(int position, uint64_t value);
  void bind(int position, uint32_t value) { bind(position, int64_t{value}); }
  void bind(int position, int value) { bind(position, int64_t{value}); }
  void bind(int position, std::string_view value);
  void bind(int position, Blob value);
  void bind(int position, std::nullopt_t);
  template <typename T>
  void bind(int position, const std::optional<T>& value) {
    if (value) {
      bind(position, *value);
    } else {
      bind(position, std::nullopt);
    }
  }

  int take(int wanted_type);
  void read_blob(std::span<unsigned char> bytes);
  Error failure() const;

  Statement* statement_;
  std::optional<Error> bind_error_;
  int column_ = 0;
  bool intact_ = true;
};

class Database {
 public:
  // Creates the file with mode 0600 if it is missing; refuses one that others may read or own.
  static Result<Database> open(const std::string& path, Durability durability);

  // To read what is in the file itself, without its log. Only while no other connection of this
  // process has it open: see prepare_file().
  static Result<Database> open_without_log(const std::string& path);

  template <typename... Values>
  Result<Query> query(Sql sql, const Values&... values) {
    ATOLL_TRY(Statement * statement, prepare(sql));
    Query query(*statement);
    int position = 0;
    (query.bind(++position, values), ...);
    ATOLL_CHECK(position == sqlite3_bind_parameter_count(statement->handle.get()));
    return query;
  }
  // Binds, runs to the end and gives how many rows were changed.
  template <typename... Values>
  Result<int64_t> run(Sql sql, const Values&... values) {
    ATOLL_TRY(Query statement, query(sql, values...));
    ATOLL_TRY_VOID(statement.run());
    return sqlite3_changes64(handle_.get());
  }
  // Several statements at once, not kept.
  Result<void> execute(Sql script);

  // A new file with all that is committed now, while others go on writing. `path` must not exist.
  Result<void> copy_to(const std::string& path);
  // kCorrupt unless SQLite finds nothing wrong with the whole file.
  Result<void> check_integrity();

  const std::string& path() const { return path_; }
  // Has the file itself hold all that is committed. False: somebody reads what it would replace.
  Result<bool> write_back();
  // Whether the file that is open was moved, replaced or removed.
  bool has_moved() const;
  // Rows that this connection has changed, also by triggers.
  int64_t total_changes() const { return sqlite3_total_changes64(handle_.get()); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  Database(std::string path, std::unique_ptr<sqlite3, Close> handle)
      : path_(std::move(path)), handle_(std::move(handle)) {}

  Result<Statement*> prepare(Sql sql);
  Result<void> configure(Durability durability);

  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
  std::unordered_map<std::string_view, Statement>
      statements_;  // after handle_: finalized before it closes
};

// Holds the write lock from begin() on; rolls back in the destructor unless committed.
class [[nodiscard]] Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace atl::store
