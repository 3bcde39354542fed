/* The protocol of src/runtime/exchange/shm_exchange.cpp between ranks that share memory, for
   spin: every interleaving of RANKS ranks that do ROUNDS rounds, where up to DEATHS of them die at
   any step. In a round each shows all others its workspace in place, looks at theirs and settles
   (SHOW; with BROADCAST one rank shows and the others look), then has a small part on its way to the next rank while it goes on, two at most
   (BEGIN_SHOW). Or they all-reduce (REDUCE): each shows the others their parts of its workspace, sums its own, shows that, copies
   theirs, and settles once, at the end. Checked: nobody waits for ever (a sleeper's timeout, which only looks for deaths,
   helps only where there was one, so a wake that is lost is a deadlock); a workspace does not
   change, and a slot is not written, while somebody looks at it; what is seen is the part that was
   meant. Memory is sequentially consistent, as the code's atomics are. Parts that travel over
   sockets are not in it, nor is spinning, which is less than sleeping.

   Each of BELL_BEFORE_PART, SLEEP_WITHOUT_BELL, NO_SETTLE, SLOT_TAKEN_EARLY, COPIED_EARLY breaks it on purpose. */

#define PAIR(of, with) ((of) * RANKS + (with))
#define SLOT(of, with, number) (PAIR(of, with) * 2 + ((number) % 2))
#define NONE 255
/* In SHOW of a round: whom this rank shows its workspace to, and whose it looks at. */
#ifdef BROADCAST
#define SHOWS_TO(peer) (peer != me && me == round % RANKS)
#define LOOKS_AT(peer) (peer != me && peer == round % RANKS)
#else
#define SHOWS_TO(peer) (peer != me)
#define LOOKS_AT(peer) (peer != me)
#endif
/* Without SHOW or REDUCE between, rank 0 looks a round late, so that three parts come to be on their way. */
#if defined(SHOW) || defined(REDUCE)
#define LATE 0
#else
#define LATE (me == 0 -> 1 : 0)
#endif

/* The boards: each rank writes its own, but for the count of sleepers. */
byte posted[RANKS * RANKS * 2];
byte content[RANKS * RANKS * 2];
byte looked[RANKS * RANKS];
byte bell[RANKS];
byte sleepers[RANKS];

byte asleep_at[RANKS];  /* the kernel's: on whose bell each rank sleeps */
byte deaths;
byte workspace[RANKS];  /* which round's elements are in it */
byte viewers[RANKS];    /* how many look at it now: for the check alone */
#ifdef REDUCE
#define SUM(round) (100 + (round))
byte part[RANKS * RANKS];          /* PAIR(of, whose): a workspace's parts, as of a round or summed */
byte part_viewers[RANKS * RANKS];
#endif

inline maybe_die() {
#if DEATHS > 0
  if
  :: deaths < DEATHS -> deaths++; goto over
  :: true
  fi
#else
  skip
#endif
}

inline ring() {
  bell[me]++;
  maybe_die();
  if
  :: sleepers[me] == 0
  :: else ->
    d_step {
      other = 0;
      do
      :: other < RANKS ->
        if
        :: asleep_at[other] == me -> asleep_at[other] = NONE
        :: else
        fi;
        other++
      :: else -> break
      od;
      other = 0
    }
  fi
}

inline await(at, word, number) {
  do
  :: word >= number -> break
  :: else ->
    heard = bell[at];
    sleepers[at]++;
    maybe_die();
    if
    :: word < number ->
      atomic {
#ifdef SLEEP_WITHOUT_BELL
        asleep_at[me] = at;
#else
        if
        :: bell[at] == heard -> asleep_at[me] = at
        :: else
        fi;
#endif
        heard = 0
      };
      atomic { asleep_at[me] == NONE || deaths > 0 -> asleep_at[me] = NONE }
    :: else -> heard = 0
    fi;
    sleepers[at]--;
    if
    :: word >= number -> break
    :: word < number && deaths > 0 -> goto over
    :: word < number && deaths == 0
    fi
  od
}

inline post(to, what) {
#ifndef SLOT_TAKEN_EARLY
  if
  :: shown[to] >= 2 -> await(to, looked[PAIR(to, me)], shown[to] - 1)
  :: else
  fi;
#endif
  shown[to]++;
  content[SLOT(me, to, shown[to])] = what;
  maybe_die();
#ifdef BELL_BEFORE_PART
  ring();
#endif
  posted[SLOT(me, to, shown[to])] = shown[to]
}

inline look(from, what) {
  await(from, posted[SLOT(from, me, seen[from] + 1)], seen[from] + 1);
  seen[from]++;
  assert(content[SLOT(from, me, seen[from])] == what)
}

/* The last glance at the slot, and then: it may be written. */
inline let_go(from, what) {
  assert(content[SLOT(from, me, seen[from])] == what);
  looked[PAIR(me, from)] = seen[from]
}

#ifdef REDUCE
inline write_part(whose, what) {
  atomic { assert(part_viewers[PAIR(me, whose)] == 0); part[PAIR(me, whose)] = what }
}

inline view_part(owner, whose, what) {
  atomic { part_viewers[PAIR(owner, whose)]++; assert(part[PAIR(owner, whose)] == what) }
  maybe_die();
  atomic { assert(part[PAIR(owner, whose)] == what); part_viewers[PAIR(owner, whose)]-- }
}

/* To all others, at most one a peer. */
inline show_all(what) {
  peer = 0;
  do
  :: peer < RANKS && peer != me -> post(peer, what); peer++
  :: peer < RANKS && peer == me -> peer++
  :: peer == RANKS -> break
  od;
  ring()
}

inline reduce() {
  peer = 0;
  do
  :: peer < RANKS -> write_part(peer, round); peer++
  :: else -> break
  od;
  show_all(2 * round);
  peer = 0;
  do
  :: peer < RANKS && peer != me -> look(peer, 2 * round); view_part(peer, me, round); peer++
  :: peer < RANKS && peer == me -> peer++
  :: peer == RANKS -> break
  od;
  write_part(me, SUM(round));
  show_all(2 * round + 1);
  peer = 0;
  do
  :: peer < RANKS && peer != me ->
#ifdef COPIED_EARLY
    write_part(peer, SUM(round));
    look(peer, 2 * round + 1);
    view_part(peer, peer, SUM(round));
#else
    look(peer, 2 * round + 1);
    view_part(peer, peer, SUM(round));
    write_part(peer, SUM(round));
#endif
    peer++
  :: peer < RANKS && peer == me -> peer++
  :: peer == RANKS -> break
  od;
  peer = 0;
  do
  :: peer < RANKS && peer != me -> let_go(peer, 2 * round + 1); peer++
  :: peer < RANKS && peer == me -> peer++
  :: peer == RANKS -> break
  od;
  ring();
#ifndef NO_SETTLE
  peer = 0;
  do
  :: peer < RANKS && peer != me -> await(peer, looked[PAIR(peer, me)], shown[peer]); peer++
  :: peer < RANKS && peer == me -> peer++
  :: peer == RANKS -> break
  od
#endif
}
#endif

proctype rank(byte me) {
  byte shown[RANKS];
  byte seen[RANKS];
  byte round = 1;
  byte peer;
  byte other;
  byte heard;
  bit rings;
  do
  :: round <= ROUNDS ->
#ifdef SHOW
    atomic { assert(viewers[me] == 0); workspace[me] = round };
    rings = 0;
    peer = 0;
    do
    :: peer < RANKS && SHOWS_TO(peer) -> post(peer, round); rings = 1; peer++
    :: peer < RANKS && !SHOWS_TO(peer) -> peer++
    :: peer == RANKS -> break
    od;
#ifndef BELL_BEFORE_PART
    if
    :: rings -> ring()
    :: else
    fi;
#endif
    rings = 0;
    peer = 0;
    do
    :: peer < RANKS && LOOKS_AT(peer) ->
      look(peer, round);
      atomic { viewers[peer]++; assert(workspace[peer] == round) };
      rings = 1;
      peer++
    :: peer < RANKS && !LOOKS_AT(peer) -> peer++
    :: peer == RANKS -> break
    od;
    maybe_die();
    peer = 0;
    do
    :: peer < RANKS && LOOKS_AT(peer) ->
      atomic { assert(workspace[peer] == round); viewers[peer]-- };
      let_go(peer, round);
      peer++
    :: peer < RANKS && !LOOKS_AT(peer) -> peer++
    :: peer == RANKS -> break
    od;
    if
    :: rings -> ring()
    :: else
    fi;
#ifndef NO_SETTLE
    peer = 0;
    do
    :: peer < RANKS && SHOWS_TO(peer) -> await(peer, looked[PAIR(peer, me)], shown[peer]); peer++
    :: peer < RANKS && !SHOWS_TO(peer) -> peer++
    :: peer == RANKS -> break
    od;
#endif
#endif
#ifdef REDUCE
    reduce();
#endif
#ifdef BEGIN_SHOW
    peer = (me + 1) % RANKS;
    post(peer, 100 + round);
#ifndef BELL_BEFORE_PART
    ring();
#endif
    peer = (me + RANKS - 1) % RANKS;
    if
    :: round > LATE ->
      look(peer, 100 + round - LATE);
      let_go(peer, 100 + round - LATE);
      ring()
    :: else
    fi;
#endif
    peer = 0;
    round++
  :: else -> break
  od;
#ifdef BEGIN_SHOW
  if
  :: LATE == 1 ->
    peer = RANKS - 1;
    look(peer, 100 + ROUNDS);
    let_go(peer, 100 + ROUNDS);
    ring()
  :: else
  fi;
  peer = (me + 1) % RANKS;
  await(peer, looked[PAIR(peer, me)], shown[peer]);
#endif
over:
  skip
}

init {
  atomic {
    byte each = 0;
    do
    :: each < RANKS -> asleep_at[each] = NONE; run rank(each); each++
    :: else -> break
    od
  }
}
