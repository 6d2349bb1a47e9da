/* Fetches a page as programs of musl do, without any library of the machine. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv) {
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found;
	if (argc < 2 || getaddrinfo(argv[1], "80", &hints, &found))
		return 1;
	int fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen))
		return 2;
	dprintf(fd, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]);
	char b[4096];
	for (ssize_t n; (n = read(fd, b, sizeof b)) > 0;)
		fwrite(b, 1, n, stdout);
	return 0;
}
