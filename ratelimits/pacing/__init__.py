"""When calls to other people's APIs may leave: pure functions of times, without any I/O."""
