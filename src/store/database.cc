#include "store/database.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <limits>
#include <utility>

#include "base/fd.h"
#include "base/file.h"

namespace atl::store {
namespace {

constexpr int kBusyTimeoutMs = 5000;
constexpr int kMaxValueBytes = 16 * 1024 * 1024;

Code code_of(int extended) {
  switch (extended) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_ROWID:
      return Code::kConflict;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
      return Code::kNotFound;
    default:
      break;
  }
  switch (extended & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
      return Code::kInvalid;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::kUnavailable;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return Code::kExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::kCorrupt;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return Code::kDenied;
    default:
      return Code::kSystem;
  }
}

Error error_of(sqlite3* handle, const std::string& path) {
  Code code = code_of(sqlite3_extended_errcode(handle));
  std::string message = "database " + path + ": " + sqlite3_errmsg(handle);
  if (code == Code::kCorrupt) {
    message += "; stop atolld and restore a backup: see `atoll restore`";
  }
  return Error(code, std::move(message), sqlite3_system_errno(handle));
}

// The file must be ours alone. A file that exists is judged by name and never opened: closing any
// descriptor of a file drops all POSIX locks this process has on it, also those of another
// connection.
Result<void> prepare_file(const std::string& path) {
  int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  if (Fd created(::open(path.c_str(), flags, 0600)); created) {
    if (fchmod(created.get(), 0600) != 0) return Error::system("chmod database " + path);
    return sync_directory_of(path);
  }
  if (errno != EEXIST) return Error::system("create database " + path);

  struct stat status;
  if (lstat(path.c_str(), &status) != 0) return Error::system("stat database " + path);
  if (!S_ISREG(status.st_mode))
    return Error(Code::kInvalid, "database " + path + ": not a regular file");
  if (status.st_uid != geteuid() || (status.st_mode & 07777) != 0600) {
    return Error(Code::kDenied, "database " + path +
                                    ": must be private to the user that runs atolld (uid " +
                                    std::to_string(geteuid()) + "); chown it and chmod 600");
  }
  return {};
}

}  // namespace

Query::Query(Statement& statement) : statement_(&statement) {
  ATOLL_CHECK(!statement.in_use);
  statement.in_use = true;
}

Query::Query(Query&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)),
      bind_error_(std::move(other.bind_error_)),
      column_(other.column_),
      intact_(other.intact_) {}

Query::~Query() {
  if (statement_ == nullptr) return;
  // The result repeats the error of the last step, which next() has reported.
  sqlite3_reset(statement_->handle.get());
  sqlite3_clear_bindings(statement_->handle.get());
  statement_->in_use = false;
}

Error Query::failure() const {
  sqlite3* handle = sqlite3_db_handle(statement_->handle.get());
  const char* path = sqlite3_db_filename(handle, "main");
  return error_of(handle, path == nullptr ? "" : path);
}

void Query::bind(int position, int64_t value) {
  if (sqlite3_bind_int64(statement_->handle.get(), position, value) != SQLITE_OK)
    bind_error_ = failure();
}

void Query::bind(int position, uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    bind_error_ = Error(Code::kInvalid, "store " + std::to_string(value) + ": number too large");
    return;
  }
  bind(position, static_cast<int64_t>(value));
}

void Query::bind(int position, std::string_view value) {
  // A null pointer would be bound as NULL; empty text is not NULL.
  const char* data = value.empty() ? "" : value.data();
  if (sqlite3_bind_text64(statement_->handle.get(), position, data, value.size(), SQLITE_TRANSIENT,
                          SQLITE_UTF8) != SQLITE_OK)
    bind_error_ = failure();
}

void Query::bind(int position, Blob value) {
  const void* data = value.empty() ? static_cast<const void*>("") : value.data();
  if (sqlite3_bind_blob64(statement_->handle.get(), position, data, value.size(),
                          SQLITE_TRANSIENT) != SQLITE_OK)
    bind_error_ = failure();
}

void Query::bind(int position, std::nullopt_t) {
  if (sqlite3_bind_null(statement_->handle.get(), position) != SQLITE_OK) bind_error_ = failure();
}

Result<bool> Query::next() {
  if (bind_error_) return *bind_error_;
  column_ = 0;
  intact_ = true;
  switch (sqlite3_step(statement_->handle.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return failure();
  }
}

Result<void> Query::run() {
  while (true) {
    ATOLL_TRY(bool more, next());
    if (!more) return {};
  }
}

int Query::take(int wanted_type) {
  int column = column_++;
  if (sqlite3_column_type(statement_->handle.get(), column) != wanted_type) intact_ = false;
  return column;
}

int64_t Query::int64() {
  int column = take(SQLITE_INTEGER);
  return intact_ ? sqlite3_column_int64(statement_->handle.get(), column) : 0;
}

uint64_t Query::uint64() {
  int64_t value = int64();
  if (value < 0) intact_ = false;
  return intact_ ? static_cast<uint64_t>(value) : 0;
}

uint32_t Query::uint32() {
  uint64_t value = uint64();
  if (value > std::numeric_limits<uint32_t>::max()) intact_ = false;
  return intact_ ? static_cast<uint32_t>(value) : 0;
}

std::string Query::text() {
  int column = take(SQLITE_TEXT);
  if (!intact_) return {};
  sqlite3_stmt* handle = statement_->handle.get();
  const unsigned char* data = sqlite3_column_text(handle, column);
  if (data == nullptr) {  // out of memory
    intact_ = false;
    return {};
  }
  return std::string(reinterpret_cast<const char*>(data),
                     static_cast<size_t>(sqlite3_column_bytes(handle, column)));
}

std::optional<int64_t> Query::int64_or_null() {
  if (sqlite3_column_type(statement_->handle.get(), column_) == SQLITE_NULL) {
    ++column_;
    return std::nullopt;
  }
  return int64();
}

std::optional<std::string> Query::text_or_null() {
  if (sqlite3_column_type(statement_->handle.get(), column_) == SQLITE_NULL) {
    ++column_;
    return std::nullopt;
  }
  return text();
}

std::string Query::bytes() {
  int column = take(SQLITE_BLOB);
  if (!intact_) return {};
  sqlite3_stmt* handle = statement_->handle.get();
  const void* data = sqlite3_column_blob(handle, column);
  auto length = static_cast<size_t>(sqlite3_column_bytes(handle, column));
  return length == 0 ? std::string() : std::string(static_cast<const char*>(data), length);
}

void Query::read_blob(std::span<unsigned char> bytes) {
  int column = take(SQLITE_BLOB);
  if (!intact_) return;
  sqlite3_stmt* handle = statement_->handle.get();
  const void* data = sqlite3_column_blob(handle, column);
  if (data == nullptr ||
      static_cast<size_t>(sqlite3_column_bytes(handle, column)) != bytes.size()) {
    intact_ = false;
    return;
  }
  std::memcpy(bytes.data(), data, bytes.size());
}

Result<void> Query::row_done() {
  sqlite3_stmt* handle = statement_->handle.get();
  ATOLL_CHECK(column_ == sqlite3_column_count(handle));
  if (intact_) return {};
  const char* path = sqlite3_db_filename(sqlite3_db_handle(handle), "main");
  return Error(Code::kCorrupt, std::string("database ") + (path == nullptr ? "" : path) +
                                   ": a row holds values it cannot have (" + sqlite3_sql(handle) +
                                   ")");
}

Result<Database> Database::open(const std::string& path, Durability durability) {
  ATOLL_TRY_VOID(prepare_file(path));
  sqlite3* handle = nullptr;
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  int status = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  // A handle is given, and has to be closed, also on failure.
  Database database(path, std::unique_ptr<sqlite3, Close>(handle));
  if (handle == nullptr) return Error(Code::kExhausted, "open database " + path + ": no memory");
  if (status != SQLITE_OK) return error_of(handle, path);
  ATOLL_TRY_VOID(database.configure(durability));
  return database;
}

Result<Database> Database::open_without_log(const std::string& path) {
  std::string uri = "file:";
  for (char c : path)
    uri += c == '?' ? "%3f" : c == '#' ? "%23" : c == '%' ? "%25" : std::string(1, c);
  uri += "?immutable=1";
  sqlite3* handle = nullptr;
  int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_URI;
  int status = sqlite3_open_v2(uri.c_str(), &handle, flags, nullptr);
  Database database(path, std::unique_ptr<sqlite3, Close>(handle));
  if (handle == nullptr) return Error(Code::kExhausted, "open database " + path + ": no memory");
  if (status != SQLITE_OK) return error_of(handle, path);
  return database;
}

Result<bool> Database::write_back() {
  ATOLL_TRY(Query query, this->query("PRAGMA wal_checkpoint(PASSIVE)"));
  ATOLL_TRY(bool answered, query.next());
  bool busy = query.int64() != 0;
  int64_t frames = query.int64();
  return answered && !busy && frames == query.int64();
}

Result<void> Database::configure(Durability durability) {
  sqlite3* handle = handle_.get();
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, kMaxValueBytes);
  sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DDL, 0, nullptr);

  // Before the first page is read: the file may have been made by somebody else.
  ATOLL_TRY_VOID(
      execute("PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON; PRAGMA foreign_keys = ON;"
              "PRAGMA secure_delete = OFF; PRAGMA temp_store = MEMORY; PRAGMA mmap_size = 0;"));
  // SQLite leaves a mode or switch it cannot set as it was, without an error; so ask what holds.
  std::string mode;
  {
    ATOLL_TRY(Query wal, query("PRAGMA journal_mode = WAL"));
    ATOLL_TRY(bool answered, wal.next());
    if (answered) mode = wal.text();
  }
  if (mode != "wal")
    return Error(Code::kUnsupported, "database " + path_ + ": journal mode is '" + mode +
                                         "'; WAL needs a local file system with shared memory");
  ATOLL_TRY_VOID(
      durability == Durability::kMachine
          ? execute("PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864;")
          : execute("PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 67108864;"));
  ATOLL_TRY(Query switches,
            query("SELECT foreign_keys, cell_size_check, synchronous FROM "
                  "pragma_foreign_keys, pragma_cell_size_check, pragma_synchronous"));
  ATOLL_TRY(bool answered, switches.next());
  int64_t synchronous = durability == Durability::kMachine ? 2 : 1;
  if (!answered || switches.int64() != 1 || switches.int64() != 1 ||
      switches.int64() != synchronous)
    return Error(Code::kUnsupported, "database " + path_ + ": SQLite lacks a required safeguard");
  return {};
}

Result<Statement*> Database::prepare(Sql sql) {
  Statement& statement = statements_[sql.view()];
  if (statement.handle) return &statement;
  sqlite3_stmt* handle = nullptr;
  int status = sqlite3_prepare_v3(handle_.get(), sql.c_str(), static_cast<int>(sql.view().size()),
                                  SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  statement.handle.reset(handle);
  if (status != SQLITE_OK) return error_of(handle_.get(), path_);
  ATOLL_CHECK(handle != nullptr);  // not empty, not a comment
  return &statement;
}

Result<void> Database::execute(Sql script) {
  if (sqlite3_exec(handle_.get(), script.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return error_of(handle_.get(), path_);
  return {};
}

Result<void> Database::copy_to(const std::string& path) {
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_ATTACHED, 1);  // the new file is attached meanwhile
  auto copied = run("VACUUM INTO ?", std::string_view(path));
  sqlite3_limit(handle_.get(), SQLITE_LIMIT_ATTACHED, 0);
  if (!copied) return std::move(copied).error().with_context("copy to " + path);
  return {};
}

Result<void> Database::check_integrity() {
  ATOLL_TRY(Query check, query("PRAGMA integrity_check(1)"));
  ATOLL_TRY(bool answered, check.next());
  std::string verdict = answered ? check.text() : "no answer";
  if (verdict == "ok") return {};
  return Error(Code::kCorrupt, "database " + path_ + ": " + verdict);
}

bool Database::has_moved() const {
  int moved = 0;
  int status = sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return status != SQLITE_OK || moved != 0;
}

Result<Transaction> Transaction::begin(Database& database) {
  ATOLL_CHECK(!database.in_transaction());
  ATOLL_TRY([[maybe_unused]] int64_t changed, database.run("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Result<void> Transaction::commit() {
  ATOLL_TRY([[maybe_unused]] int64_t changed, database_->run("COMMIT"));
  database_ = nullptr;
  return {};
}

Transaction::~Transaction() {
  // A full disk or an I/O error may have rolled back already.
  if (database_ == nullptr || !database_->in_transaction()) return;
  auto rolled_back = database_->run("ROLLBACK");
  // Going on inside a half-done transaction would acknowledge what is not committed.
  ATOLL_CHECK(rolled_back.ok() || !database_->in_transaction());
}

}  // namespace atl::store
