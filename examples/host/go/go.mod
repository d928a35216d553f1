module example.org/lapax/host

go 1.19
