// gateway/admission/caller_accounts.hpp - what each tenant may use and has used of one service at
// this gateway.
//
// A service of the gateway has one. On the loop's thread; time is a value. Invariant: an account
// stays at its place, so that calls may refer to it. Cost: O(log tenants) a search.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "serving/admission/tenant_terms.hpp"
#include "serving/admission/token_bucket.hpp"
#include "serving/gateway_report.hpp"

namespace orrery {

struct CallerAccount {
  RoutedTenant terms;
  TokenBucket bucket;
  ServiceCounts used;
};

class CallerAccounts {
 public:
  /// Takes the terms of another table over; accounts keep what they used.
  void set_terms(TenantTerms terms, Instant now) {
    terms_ = std::move(terms);
    for (auto& [name, account] : accounts_) set(account, terms_.named(name), now);
  }
  /// The account of the tenant that a key counts as.
  [[nodiscard]] CallerAccount& of(const RoutedKey& key, Instant now) {
    RoutedTenant terms = terms_.of(key);
    const auto [at, fresh] = accounts_.try_emplace(terms.name);
    if (fresh) set(at->second, std::move(terms), now);
    return at->second;
  }
  [[nodiscard]] const std::map<std::string, CallerAccount>& all() const { return accounts_; }
  /// What all have used, by name.
  [[nodiscard]] std::vector<CallerCounts> usage() const {
    std::vector<CallerCounts> list;
    list.reserve(accounts_.size());
    for (const auto& [name, account] : accounts_) list.push_back({name, account.used});
    return list;
  }

 private:
  static void set(CallerAccount& account, RoutedTenant terms, Instant now) {
    account.terms = std::move(terms);
    account.bucket.set_rate(account.terms.tokens_per_s, now);
  }

  TenantTerms terms_;
  std::map<std::string, CallerAccount> accounts_;
};

}  // namespace orrery
